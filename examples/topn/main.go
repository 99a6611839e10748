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

const usage = `topn prints the terms that were searched for most within the last while.

usage: topn [flags]

It plays a small script of searches, one list a batch, and prints a chart for
every batch: + a term rose, - it fell, * it is new. It ends by itself when the
last search has left the window, and checks that nothing is left then. With
-checkpoint a stopped run is gone on with by the next one; the chart before is not
kept, so its first chart marks all terms as new.

Exit status: 0 the window ran empty; 1 it did not, or the run failed or was ended
early; 2 wrong usage.

flags:
`

// options are the program's flags.
type options struct {
	interval, window time.Duration
	n                int
	checkpoint       string // folder; none if empty
}

func main() { program.Main(run) }

// script is what is searched for in each batch.
func script() [][]string {
	var batches [][]string
	for _, terms := range []string{
		"go rust go zig",
		"go java zig",
		"rust rust rust ada",
		"rust zig zig zig",
		"",
		"ada ada zig",
		"go go ada go",
		"go ada ada",
		"java",
	} {
		batches = append(batches, strings.Fields(terms))
	}
	return batches
}

// run is the program; it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := program.NewFlags("topn", stderr)
	var o options
	f.DurationVar(&o.interval, "interval", 100*time.Millisecond, "batch `interval`")
	f.DurationVar(&o.window, "window", 0, "what counts is of the last `time`, a multiple of the interval; 0: 4 intervals")
	f.IntVar(&o.n, "n", 3, "`places` of a chart")
	f.StringVar(&o.checkpoint, "checkpoint", "", "`folder` in which window and position outlive the process")
	if status, over := program.Parse(f, args, usage, stdout); over {
		return status
	}
	if o.window == 0 {
		o.window = 4 * o.interval
	}
	if f.NArg() > 0 || o.interval <= 0 || o.window < 0 || o.window%o.interval != 0 || o.n < 1 {
		fmt.Fprintln(stderr, "topn: takes no arguments, an interval above 0, a window that is a multiple of it, and at least 1 place; topn -h explains")
		return 2
	}
	if err := play(ctx, script(), o, stdout); err != nil {
		fmt.Fprintln(stderr, "topn:", err)
		return 1
	}
	return 0
}

// play runs the job over the script and then over empty batches, until the last
// search must have left the window.
func play(ctx context.Context, script [][]string, o options, stdout io.Writer) error {
	script = append(script, make([][]string, o.window/o.interval)...)
	queue := source.NewQueue(1, script...)
	queue.Finish()

	charts := 0
	var last []count
	err := dstream.Run(ctx, o.interval, job(queue, o.n, o.window, o.interval, func(b dstream.Batch, chart []count) error {
		charts++
		_, err := fmt.Fprintln(stdout, line(b, last, chart))
		last = chart
		return err
	}), program.Options(o.checkpoint)...)
	switch {
	case err != nil:
		return err
	case o.checkpoint != "" && ctx.Err() != nil:
		return program.ErrGoOn
	case o.checkpoint != "" && len(last) == 0: // earlier runs may have had the most of it
		_, err = fmt.Fprintf(stdout, "the window has run empty; this run made %d charts\n", charts)
		return err
	case charts < len(script):
		return fmt.Errorf("ended after %d of %d batches", charts, len(script))
	case len(last) > 0:
		return fmt.Errorf("the window should be empty and holds %v", last)
	}
	_, err = fmt.Fprintln(stdout, "every search has left the window again")
	return err
}
