package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/kafka/embedded"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

type options struct {
	root, out      string
	brokers, topic string
	batch          int64
	interval       time.Duration
	partitions     int
	compress       int
	totals         string
	slow           string
	after          int
}

func main() {
	var o options
	serveIn := flag.String("serve", "", "be a broker that keeps its log in this `folder`, and tell its address")
	flag.StringVar(&o.root, "root", "", "the checkpoint `folder`")
	flag.StringVar(&o.out, "out", "", "the `folder` of the sink")
	flag.StringVar(&o.brokers, "brokers", "", "`addresses` of the brokers")
	flag.StringVar(&o.topic, "topic", "", "the `topic` to count")
	flag.Int64Var(&o.batch, "batch", 1000, "at most so many `records` in a batch")
	flag.DurationVar(&o.interval, "interval", 20*time.Millisecond, "batch `interval`")
	flag.IntVar(&o.partitions, "partitions", 3, "`number` of partitions of the state")
	flag.IntVar(&o.compress, "compress", 0, "compression of state files: 0 none, 1 s2, 2 zstd")
	flag.StringVar(&o.totals, "totals", "", "count to the end of the topic, and write all totals to this `file`")
	flag.StringVar(&o.slow, "slow", "", "the `phase` to dawdle in")
	flag.IntVar(&o.after, "after", 0, "dawdle after so many `epochs` of this run")
	flag.Parse()
	err := error(nil)
	if *serveIn != "" {
		err = serve(*serveIn)
	} else {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "job:", err)
		os.Exit(1)
	}
}

func serve(dir string) error {
	b, err := embedded.Start(embedded.DataDir(dir))
	if err != nil {
		return err
	}
	defer b.Close()
	fmt.Fprintln(os.Stdout, b.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func run(o options) error {
	p := &phases{to: os.Stdout, slow: o.slow, after: o.after}
	disk := vfs.WithFaults(vfs.Disk(), p)
	root, err := vfs.NewDir(disk, o.root, fmt.Sprint(disk.PID()))
	if err != nil {
		return err
	}
	out, err := vfs.NewDir(disk, o.out, fmt.Sprint(disk.PID()))
	if err != nil {
		return err
	}
	// Few versions between snapshots, so that they and the clean-up are killed too.
	opts := []dstream.ContextOption{
		dstream.WithCheckpointStore(root, dstream.SnapshotEvery(3), dstream.MaintenanceInterval(10*o.interval),
			dstream.Compress(dstream.Compression(o.compress))),
		dstream.WithRescale(),
		dstream.WithMaxRecordsPerBatch(o.batch),
		dstream.WithListener(dstream.Listener{
			Notice:         func(n dstream.Notice) { fmt.Fprintln(os.Stderr, "job:", n) },
			BatchStarted:   func(b dstream.Batch) { p.began(b.Epoch) },
			BatchCompleted: func(b dstream.Progress) { p.ended(b.Batch.Epoch) },
		}),
	}
	totals := map[string]int64{}
	if o.totals != "" {
		opts = append(opts, dstream.WithStopWhenDone())
	}
	if err := dstream.Run(context.Background(), o.interval, job(o, p, out, totals), opts...); err != nil {
		return err
	}
	if o.totals == "" {
		return errors.New("the stream ended, though nobody asked for it")
	}
	text, err := json.Marshal(totals)
	if err != nil {
		return err
	}
	return os.WriteFile(o.totals, text, 0o600)
}

// row is a line of the sink: word, tab, running count.
func row(dst []byte, c dstream.Pair[string, int64]) ([]byte, error) {
	return strconv.AppendInt(append(append(dst, c.Key...), '\t'), c.Value, 10), nil
}

// job counts words. The totals after the newest batch go to totals, as a plain
// output, only if somebody wants them.
func job(o options, p *phases, out vfs.Store, totals map[string]int64) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		source := []kafka.SourceOption{kafka.Brokers(strings.Split(o.brokers, ",")...), kafka.Topics(o.topic), kafka.FromEarliest()}
		if o.totals != "" {
			source = append(source, kafka.StopAtEnd())
		}
		lines := kafka.DirectStream(ssc, "lines", source...)
		words := dstream.FlatMap(lines, func(r kafka.Record) []string { return strings.Fields(r.Text()) })
		ones := dstream.MapPair(words, func(w string) (string, int64) { return w, 1 })
		counts := dstream.MapWithState(ones, dstream.Function(
			func(word string, one dstream.Option[int64], state *dstream.State[int64]) dstream.Pair[string, int64] {
				p.computing()
				total := state.OrElse(0) + one.OrElse(0)
				state.Update(total)
				return dstream.KV(word, total)
			}).Named("counts").NumPartitions(o.partitions))
		dstream.Output(counts, "running", sink.Lines(sink.NewFiles("counts", out), row))
		if o.totals != "" {
			dstream.ForeachRDD(counts.StateSnapshots(), func(ctx context.Context, _ dstream.Batch, all *rdd.RDD[dstream.Pair[string, int64]]) error {
				pairs, err := rdd.Collect(ctx, all)
				clear(totals)
				for _, c := range pairs {
					totals[c.Key] = c.Value
				}
				return err
			}, dstream.Name("totals"))
		}
		return nil
	}
}
