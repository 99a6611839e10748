package milltool

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/harness"
)

// Main is a program of nothing but the tool, with replay for the given job:
//
//	func main() { milltool.Main(job) }
//
// or, in a program that runs the job otherwise,
//
//	if len(os.Args) > 1 && os.Args[1] == "state" {
//		os.Args = append(os.Args[:1], os.Args[2:]...)
//		milltool.Main(job)
//	}
//
// opts are the options that the job runs with, without WithCheckpoint: the root
// is an argument. It ends the process with the command's exit code.
func Main(job dstream.Job, opts ...dstream.ContextOption) {
	env := System()
	env.Replay = ReplayJob(job, opts...)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := Run(ctx, env)
	stop()
	os.Exit(code)
}

// ReplayJob makes the command replay of a job, for [Env]. opts as in [Main]. The
// job is built anew for each replay; its outputs are captured, its exactly-once
// sinks left alone.
func ReplayJob(job dstream.Job, opts ...dstream.ContextOption) ReplayFunc {
	return func(ctx context.Context, r Replay) error {
		h := harness.New()
		h.CaptureSinks()
		h.MaintainInline()
		h.OnOutput(func(ctx context.Context, c harness.OutputCall) error {
			rows, err := c.Rows(ctx)
			if err == nil {
				r.Output(c.Name, c.Kind, rows)
			}
			return err
		})
		all := append(slices.Clone(opts), dstream.WithCheckpointStore(r.Store), dstream.WithHarness(h), dstream.WithOutput(io.Discard))
		return dstream.Run(ctx, r.Interval, job, all...)
	}
}
