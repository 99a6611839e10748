package milltool

import (
	"context"
	"errors"
	"flag"
)

// ReplayFunc computes an epoch again.
type ReplayFunc func(ctx context.Context) error

func replayCommand() command {
	return command{
		name: "replay", args: []string{"DIR", "N"}, short: "not there yet",
		bind: func(c *call, _ *flag.FlagSet) func(context.Context) error {
			return func(context.Context) error { return errors.New("not there yet") }
		},
	}
}
