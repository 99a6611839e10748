package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"

	"github.com/statemill/statemill/dstream"
)

const usage = `wordcount counts the words of real text with mapWithState.

usage: wordcount [flags] [file or folder ...]
       wordcount [flags] -           (the standard input)

Without files it counts the Go source files of the installed Go toolchain. The
text is cut into batches; the running total of every word is state, spread over
partitions. The top words of batches, and at the end the numbers of the run, go
to the standard output, the progress to the standard error. Then the words are
counted once more in another, plain way, and every total is compared:

    verified: 312345 keys exact

A word is a longest run of letters, digits and underscores; case counts.
Interrupt (Ctrl-C) ends it early, without a comparison.

Exit status: 0 every total exact; 1 a total differs, the text cannot be read, or
the run failed or was ended early; 2 wrong usage.

flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// options are the command line.
type options struct {
	partitions int
	workers    int
	batchBytes int64
	interval   time.Duration
	top, every int
	args       []string
}

func parse(args []string, stdout, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("wordcount", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {} // asked for it goes to the standard output; after a fault it would hide it
	f.IntVar(&o.partitions, "partitions", 8, "`number` of partitions of the state")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "`number` of workers")
	f.Int64Var(&o.batchBytes, "batch", 1<<20, "at most so many `bytes` of text in a batch")
	f.DurationVar(&o.interval, "interval", 10*time.Millisecond, "batch `interval`")
	f.IntVar(&o.top, "top", 8, "show the so many top `words` of a batch; 0 shows none")
	f.IntVar(&o.every, "every", 10, "show the top words of every so many `batches`")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, usage)
			f.SetOutput(stdout)
			f.PrintDefaults()
		}
		return o, err
	}
	o.args = f.Args()
	for name, v := range map[string]int64{
		"partitions": int64(o.partitions), "workers": int64(o.workers), "batch": o.batchBytes,
		"interval": int64(o.interval), "every": int64(o.every), "top": int64(o.top) + 1,
	} {
		if v < 1 {
			err := fmt.Errorf("-%s is too small; wordcount -h explains", name)
			fmt.Fprintln(stderr, "wordcount:", err)
			return o, err
		}
	}
	return o, nil
}

// run is the program; it returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	t, err := openText(ctx, o.args, stdin, o.batchBytes)
	if err != nil {
		fmt.Fprintln(stderr, "wordcount:", err)
		return 1
	}
	if err := count(ctx, o, t, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "wordcount:", err)
		return 1
	}
	return 0
}

// count runs the job over the text, prints the numbers and verifies the totals.
func count(ctx context.Context, o options, t *text, stdout, stderr io.Writer) error {
	fmt.Fprintf(stdout, "counting the words of %s: %d partitions, at most %d bytes a batch\n", t.what, o.partitions, o.batchBytes)
	r := &results{n: o.top, every: o.every, last: t.done, show: func(b dstream.Batch, top string) {
		fmt.Fprintf(stdout, "batch %d: top words: %s\n", b.Epoch, top)
	}}
	m := &meter{to: stderr, began: time.Now()}
	err := dstream.Run(ctx, o.interval, job(t.lines, o.partitions, r),
		dstream.WithParallelism(o.workers),
		dstream.WithStopWhenDone(),
		dstream.WithListener(dstream.Listener{BatchCompleted: m.batch}))
	took := time.Since(m.began)
	if err != nil {
		return err
	}
	if r.final == nil {
		return errors.New("ended before the last batch: nothing is verified")
	}
	m.summary(stdout, took, len(r.final))

	plain, err := t.plain()
	if err != nil {
		return fmt.Errorf("the independent count: %w", err)
	}
	if err := verify(r.final, plain); err != nil {
		return err
	}
	if plain.words != m.words {
		return fmt.Errorf("MISMATCH: the job counted %d words, the independent count %d", m.words, plain.words)
	}
	fmt.Fprintf(stdout, "verified: %d keys exact\n", len(r.final))
	return nil
}
