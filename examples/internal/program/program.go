// Package program is what the main functions of the examples share: the start, the
// flags, and the option of a checkpoint. What an example shows is in its job.go.
//
// [Main] starts a program, [Parse] reads its flags, [Options] are those of a run over
// a script. It holds nothing and starts nothing.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/statemill/statemill/dstream"
)

// Main runs a program until it ends or is interrupted, and exits with its status. At the
// first interrupt (Ctrl-C, or SIGTERM) ctx ends, so that the program finishes its running
// batch; a second one ends the process at once.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupts
		signal.Stop(interrupts) // before ctx ends: whoever sees that may rely on it
		stop()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// NewFlags makes the set of flags of a program, which are still to be defined.
func NewFlags(name string, stderr io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {} // asked for it goes to the standard output; after a fault it would hide it
	return f
}

// Parse reads the arguments. With over the program is to exit with the status: 0 when
// help was asked for, which is written then, 2 after a fault, which is told.
func Parse(f *flag.FlagSet, args []string, usage string, stdout io.Writer) (status int, over bool) {
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		f.SetOutput(stdout)
		f.PrintDefaults()
		return 0, true
	case err != nil:
		return 2, true
	}
	return 0, false
}

// Options are those of a run to the end of a script, with a checkpoint in a folder if
// one is named.
func Options(checkpoint string) []dstream.ContextOption {
	opts := []dstream.ContextOption{dstream.WithStopWhenDone()}
	if checkpoint != "" {
		opts = append(opts, dstream.WithCheckpoint(checkpoint))
	}
	return opts
}

// ErrGoOn says that a run with a checkpoint was stopped before the end of its script.
var ErrGoOn = errors.New("stopped before the end of the script: start again with the same -checkpoint to go on")
