// Command statemill shows, checks, repairs, rescales and forks the state that a
// Statemill job keeps in a checkpoint root. `statemill help` lists its commands;
// docs/statemill.md is its manual, and package milltool has it as a library.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/statemill/statemill/milltool"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := milltool.Run(ctx, milltool.System())
	stop()
	os.Exit(code)
}
