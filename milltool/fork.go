package milltool

import (
	"context"
	"errors"
	"flag"
)

func forkCommand() command {
	return command{
		name: "fork", args: []string{"DIR"}, short: "not there yet",
		bind: func(c *call, _ *flag.FlagSet) func(context.Context) error {
			return func(context.Context) error { return errors.New("not there yet") }
		},
	}
}
