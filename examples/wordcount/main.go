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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/statemill/statemill/vfs"
)

const usage = `wordcount counts the words of text in a Kafka topic with mapWithState.

usage: wordcount [flags] [file or folder ...]
       wordcount [flags] -                   (the standard input)
       wordcount [flags] -brokers HOST:PORT[,HOST:PORT ...] -topic TOPIC [-out TOPIC]

Text: it starts a small Kafka inside this process, writes the text to a topic of
4 partitions, a record for each line, and counts the words of that topic while
it is being written. Without files the text is the Go source files of the
installed Go toolchain. The records are cut into batches; the running total of
every word is state, spread over partitions. It ends when all is counted. Then
the words of the text are counted once more in another, plain way, and every
total is compared:

    verified: 312345 keys exact

With -files it does the same without Kafka.

With -checkpoint DIR state and positions are kept in the folder DIR, and the log
of the small Kafka in DIR.kafka beside it. Kill the program at any time (kill -9
too) and start it again with the same flags: it goes on where it stopped, writes
what is missing in the topic, and counts every line once. At the end the topic
is read and counted by other means, the text too, and every total is compared.
What is in DIR can be looked at with the statemill command at any time.

With -brokers it counts the topic of a running Kafka, from its oldest record on,
until it is interrupted (Ctrl-C): it finishes the running batch and prints the
numbers. With -out it then writes every total to that topic, as a record with
the word as its key and "word TAB count" as its value; the topic must exist.
That is a plain output, written at least once: a program that is started again
writes all totals again. With -checkpoint it goes on counting where it stopped,
without it counts from the oldest record again.

A word is a longest run of letters, digits and underscores; case counts.
The top words of batches (the totals so far of words in that batch), and at the
end the numbers of the run, go to the standard output, the progress to the
standard error.

Exit status: 0 every total exact, or with -brokers ended by an interrupt; 1 a
total differs, the text or the topic cannot be read, or the run failed or,
without -brokers, was ended early or is in use by another process; 2 wrong usage. (After an interrupt go run
says 1 whatever the program says: build it where the status matters.)

flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends it at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// options are the command line.
type options struct {
	partitions int
	workers    int
	batch      int64
	interval   time.Duration
	top, every int

	checkpoint string
	files      bool
	brokers    []string
	topic, out string
	args       []string
}

// live says that the input is a topic which others write.
func (o *options) live() bool { return len(o.brokers) > 0 }

func parse(args []string, stdout, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("wordcount", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {} // asked for it goes to the standard output; after a fault it would hide it
	f.Func("brokers", "count a topic of the running Kafka at this `address` (host:port; more with commas between)", func(s string) error {
		o.brokers = strings.Split(s, ",")
		if slices.Contains(o.brokers, "") {
			return errors.New("an address is empty")
		}
		return nil
	})
	f.StringVar(&o.topic, "topic", "", "the `topic` to count, with -brokers")
	f.StringVar(&o.out, "out", "", "write the final totals to this `topic`, with -brokers")
	f.StringVar(&o.checkpoint, "checkpoint", "", "keep state and positions in this `folder`, and go on from what is there")
	f.BoolVar(&o.files, "files", false, "count the text itself, without Kafka")
	f.IntVar(&o.partitions, "partitions", 8, "`number` of partitions of the state")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "`number` of workers")
	f.Int64Var(&o.batch, "batch", 50_000, "at most so many `lines` in a batch")
	f.DurationVar(&o.interval, "interval", 50*time.Millisecond, "batch `interval`; with -brokers 1s if not set")
	f.IntVar(&o.top, "top", 8, "show the so many top `words` of a batch; 0 shows none")
	f.IntVar(&o.every, "every", 10, "show the top words of every so many `batches`; with -brokers 1 if not set")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, usage)
			f.SetOutput(stdout)
			f.PrintDefaults()
		}
		return o, err
	}
	o.args = f.Args()
	if o.live() {
		set := map[string]bool{}
		f.Visit(func(f *flag.Flag) { set[f.Name] = true })
		if !set["interval"] {
			o.interval = time.Second
		}
		if !set["every"] {
			o.every = 1
		}
	}
	if err := o.valid(); err != nil {
		fmt.Fprintf(stderr, "wordcount: %v; wordcount -h explains\n", err)
		return o, err
	}
	return o, nil
}

func (o *options) valid() error {
	for name, v := range map[string]int64{
		"partitions": int64(o.partitions), "workers": int64(o.workers), "batch": o.batch,
		"interval": int64(o.interval), "every": int64(o.every), "top": int64(o.top) + 1,
	} {
		if v < 1 {
			return fmt.Errorf("-%s is too small", name)
		}
	}
	switch {
	case o.live() && o.topic == "":
		return errors.New("-brokers needs -topic")
	case !o.live() && (o.topic != "" || o.out != ""):
		return errors.New("-topic and -out need -brokers")
	case o.live() && (o.files || len(o.args) > 0):
		return errors.New("-brokers counts a topic: it goes with neither -files nor names of files")
	case o.checkpoint != "" && len(o.args) == 1 && o.args[0] == "-":
		return errors.New("-checkpoint wants a text that can be read again: not the standard input")
	case o.live() && o.topic == o.out:
		return errors.New("-topic and -out are the same topic: it would count its own output")
	}
	return nil
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
	if o.checkpoint != "" {
		err = usable(vfs.Disk(), o.checkpoint)
	}
	switch {
	case err != nil:
	case o.live():
		err = withNextStep(o.checkpoint, countTopic(ctx, o, stdout, stderr))
	default:
		var t *text
		if t, err = openText(ctx, o.args, stdin); err == nil {
			err = withNextStep(o.checkpoint, countText(ctx, o, t, stdout, stderr))
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "wordcount:", err)
		return 1
	}
	return 0
}
