package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// version is set by the build.
var version = "?"

func main() {
	dir := flag.String("dir", "", "the `folder` of the checkpoint and of the sink")
	broker := flag.String("broker", "", "`addresses` of the brokers, with commas between")
	in := flag.String("in", "in", "the `topic` to count")
	to := flag.String("out", "out", "the `topic` to write to")
	die := flag.String("die", "", "the `sink` after whose commit of the second epoch to die")
	chance := flag.Bool("chance", false, "add a random number to each total")
	accept := flag.Bool("accept", false, "accept an epoch that came out another way")
	flag.Parse()
	if err := run(*dir, *broker, *in, *to, *die, *chance, *accept); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, checkpoint.ErrRedoDiffers) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

func run(dir, broker, in, to, die string, chance, accept bool) error {
	out, err := vfs.NewDir(vfs.Disk(), filepath.Join(dir, "out"), fmt.Sprint(os.Getpid()))
	if err != nil {
		return err
	}
	opts := []dstream.ContextOption{dstream.WithCheckpoint(filepath.Join(dir, "ckpt")), dstream.WithMaxRecordsPerBatch(2), dstream.WithStopWhenDone()}
	if accept {
		opts = append(opts, dstream.WithAcceptDifferentRedo())
	}
	brokers := kafka.Brokers(strings.Split(broker, ",")...)
	return dstream.Run(context.Background(), 20*time.Millisecond, func(ssc *dstream.StreamingContext) error {
		words := kafka.DirectStream(ssc, "words", brokers, kafka.Topics(in), kafka.FromEarliest(), kafka.StopAtEnd())
		ones := dstream.MapPair(words, func(r kafka.Record) (string, int) { return string(r.Value), 1 })
		totals := dstream.MapWithState(ones, dstream.Function(
			func(word string, one dstream.Option[int], s *dstream.State[int]) string {
				s.Update(s.OrElse(0) + one.OrElse(0))
				text := fmt.Sprintf("%s=%d %s", word, s.Get(), version)
				if chance {
					text += fmt.Sprint(" ", rand.Int64())
				}
				return text
			}).Named("totals").NumPartitions(2))
		files := sink.Lines(sink.NewFiles("files", out), sink.Text[string])
		topic := kafka.To(kafka.NewSink("topic", brokers), to, func(text string) (kafka.Message, error) {
			word, _, _ := strings.Cut(text, "=")
			return kafka.Message{Key: []byte(word), Value: []byte(text)}, nil
		})
		for name, door := range map[string]*sink.Sink[string]{"files": &files, "topic": &topic} {
			if name == die {
				door.Unit = &mortal{door.Unit}
			}
		}
		dstream.Output(totals, "files", files)
		dstream.Output(totals, "topic", topic)
		return nil
	}, opts...)
}

// mortal is a unit that takes the process along when it has committed epoch 2.
type mortal struct{ sink.Unit }

// Begin begins a transaction.
func (u *mortal) Begin(ctx context.Context, epoch uint64) (sink.Tx, error) {
	tx, err := u.Unit.Begin(ctx, epoch)
	return &last{tx, epoch}, err
}

type last struct {
	sink.Tx
	epoch uint64
}

// Commit commits and dies.
func (x *last) Commit(ctx context.Context, m sink.Memory) error {
	err := x.Tx.Commit(ctx, m)
	if err == nil && x.epoch == 2 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return err
}
