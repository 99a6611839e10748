package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/examples/internal/program"
	"github.com/statemill/statemill/source"
)

const usage = `sessions groups page views into sessions that end by a timeout.

usage: sessions [flags]

It plays a small script of page views, one list a batch, and prints every
session when its user has been idle for longer than -idle. It ends by itself
after the last session, and checks that every view is in exactly one session.

Exit status: 0 all views accounted for; 1 not, or the run failed or was ended
early; 2 wrong usage.

flags:
`

func main() { program.Main(run) }

// visits is the script: what the users look at in each batch.
func visits() [][]view {
	return [][]view{
		{{"ann", "/"}, {"bob", "/"}},
		{{"ann", "/shoes"}},
		{{"ann", "/cart"}, {"cid", "/jobs"}},
		{{"bob", "/"}}, // prolongs bob's session: three intervals are not yet idle
		{},
		{{"ann", "/thanks"}},
		{},
		{},
		{},
		{},
		{{"bob", "/news"}}, // bob is back: a new session
		{{"dee", "/"}, {"dee", "/about"}},
	}
}

// run is the program; it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := program.NewFlags("sessions", stderr)
	interval := f.Duration("interval", 100*time.Millisecond, "batch `interval`")
	idle := f.Duration("idle", 300*time.Millisecond, "a session ends when its user has been idle for longer than this `time`")
	if status, over := program.Parse(f, args, usage, stdout); over {
		return status
	}
	if f.NArg() > 0 || *interval <= 0 || *idle < 0 {
		fmt.Fprintln(stderr, "sessions: takes no arguments, an interval above 0 and an idle time of at least 0; sessions -h explains")
		return 2
	}
	if err := play(ctx, visits(), *interval, *idle, stdout); err != nil {
		fmt.Fprintln(stderr, "sessions:", err)
		return 1
	}
	return 0
}

// play runs the job over the script and then over empty batches, until the last
// session must have ended.
func play(ctx context.Context, script [][]view, interval, idle time.Duration, stdout io.Writer) error {
	views := 0
	for _, batch := range script {
		views += len(batch)
	}
	script = append(script, make([][]view, idle/interval+1)...)
	queue := source.NewQueue(1, script...)
	queue.Finish()

	sessions, seen := 0, 0
	err := dstream.Run(ctx, interval, job(queue, idle, func(b dstream.Batch, s ended) error {
		sessions++
		seen += len(s.Value.Pages)
		_, err := fmt.Fprintln(stdout, describe(b, s))
		return err
	}), dstream.WithStopWhenDone())
	if err != nil {
		return err
	}
	if seen != views {
		return fmt.Errorf("%d of %d views are in the sessions that ended", seen, views)
	}
	_, err = fmt.Fprintf(stdout, "all %d views are in %d sessions\n", views, sessions)
	return err
}

// describe is a line about a session.
func describe(b dstream.Batch, s ended) string {
	return fmt.Sprintf("batch %d: session of %s ended: %d views in %v: %s",
		b.Epoch, s.Key, len(s.Value.Pages), s.Value.Last.Sub(s.Value.First), strings.Join(s.Value.Pages, " "))
}
