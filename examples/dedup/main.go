package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/examples/internal/program"
	"github.com/statemill/statemill/source"
)

const usage = `dedup lets the first delivery of every event through and holds back the others.

usage: dedup [flags]

It plays a small script of deliveries, one list a batch, and prints what becomes
of each. An event is forgotten when nothing has come of it for longer than
-remember. It ends by itself, and checks that every delivery was judged and every
event let through. With -checkpoint a stopped run is gone on with by the next one.

Exit status: 0 all deliveries accounted for; 1 not, or the run failed or was ended
early; 2 wrong usage.

flags:
`

// options are the program's flags.
type options struct {
	interval, remember time.Duration
	checkpoint         string // folder; none if empty
}

func main() { program.Main(run) }

// script is what comes in each batch.
func script() [][]delivery {
	return [][]delivery{
		{{"p1", "pay ann 10"}, {"p2", "pay bob 20"}},
		{{"p1", "pay ann 10"}, {"p3", "pay cid 30"}},
		{},
		{{"p2", "pay bob 20"}, {"p2", "pay bob 20"}, {"p4", "pay dee 40"}, {"p4", "pay dee 40"}},
		{},
		{{"p3", "pay cid 30"}},
		{},
		{},
		{},
		{},
		{},
		{{"p1", "pay ann 10"}}, // forgotten by now: it goes through again
	}
}

// run is the program; it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := program.NewFlags("dedup", stderr)
	var o options
	f.DurationVar(&o.interval, "interval", 100*time.Millisecond, "batch `interval`")
	f.DurationVar(&o.remember, "remember", 500*time.Millisecond, "an event is forgotten when nothing has come of it for longer than this `time`")
	f.StringVar(&o.checkpoint, "checkpoint", "", "`folder` in which state and position outlive the process")
	if status, over := program.Parse(f, args, usage, stdout); over {
		return status
	}
	if f.NArg() > 0 || o.interval <= 0 || o.remember <= 0 {
		fmt.Fprintln(stderr, "dedup: takes no arguments, an interval and a time to remember above 0; dedup -h explains")
		return 2
	}
	if err := play(ctx, script(), o, stdout); err != nil {
		fmt.Fprintln(stderr, "dedup:", err)
		return 1
	}
	return 0
}

// play runs the job to the end of the script.
func play(ctx context.Context, script [][]delivery, o options, stdout io.Writer) error {
	queue := source.NewQueue(1, script...)
	queue.Finish()

	events, judged, through := map[string]bool{}, 0, map[string]int{}
	err := dstream.Run(ctx, o.interval, job(queue, o.remember, outputs{
		first: func(b dstream.Batch, v verdict) error {
			judged++
			through[v.ID]++
			_, err := fmt.Fprintf(stdout, "batch %d: %s through: %s\n", b.Epoch, v.ID, v.Text)
			return err
		},
		repeated: func(b dstream.Batch, v verdict) error {
			judged++
			_, err := fmt.Fprintf(stdout, "batch %d: %s held back: it came %v ago\n", b.Epoch, v.ID, b.Time.Sub(v.Since))
			return err
		},
	}), program.Options(o.checkpoint)...)
	if err != nil {
		return err
	}
	deliveries := 0
	for _, batch := range script {
		deliveries += len(batch)
		for _, d := range batch {
			events[d.ID] = true
		}
	}
	switch {
	case o.checkpoint != "" && ctx.Err() != nil:
		err = program.ErrGoOn
	case o.checkpoint != "": // earlier runs may have had the most of it
		_, err = fmt.Fprintf(stdout, "the script is over; %d of its %d deliveries came in this run\n", judged, deliveries)
	case judged != deliveries || len(through) != len(events):
		err = fmt.Errorf("%d of %d deliveries were judged, and %d of %d events let through", judged, deliveries, len(through), len(events))
	default:
		_, err = fmt.Fprintf(stdout, "all %d deliveries of %d events judged\n", deliveries, len(events))
	}
	return err
}
