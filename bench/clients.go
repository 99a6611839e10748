package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A tally is what a client got, so that a client that skips its work is found.
type tally struct{ records, bytes atomic.Int64 }

func (t *tally) add(records, bytes int64) {
	t.records.Add(records)
	t.bytes.Add(bytes)
}

func (t *tally) check(want int) error {
	if n, b := t.records.Load(), t.bytes.Load(); n != int64(want) || b != int64(want)*lineSize {
		return fmt.Errorf("%d records with %d bytes of values, want %d with %d", n, b, want, want*lineSize)
	}
	return nil
}

// A fetcher reads a topic with our source, on two workers, as the engine does.
type fetcher struct {
	src   source.Source[kafka.Record]
	epoch uint64
}

func newFetcher(t topic) (*fetcher, error) {
	f := &fetcher{src: kafka.NewSource(kafka.Brokers(t.seeds()...), kafka.Topics(t.Name), kafka.FromEarliest())}
	return f, f.src.Open(context.Background(), nil)
}

// batch plans and reads n records.
func (f *fetcher) batch(n int) error {
	ctx := context.Background()
	f.epoch++
	plan, err := f.src.Plan(ctx, source.Limits{Records: int64(n), Epoch: f.epoch})
	if err != nil {
		return err
	}
	var got tally
	if err := pool.Run(ctx, 2, len(plan.Ranges), func(ctx context.Context, _, i int) error {
		var records, bytes int64
		err := f.src.Read(ctx, plan.Ranges[i], func(_ int64, r kafka.Record) error {
			records++
			bytes += int64(len(r.Value))
			return nil
		})
		got.add(records, bytes)
		return err
	}); err != nil {
		return err
	}
	if err := got.check(n); err != nil {
		return err
	}
	return f.src.Committed(ctx, plan)
}

// readStatemill reads the whole topic with our source.
func readStatemill(t topic, n int) error {
	f, err := newFetcher(t)
	if err != nil {
		return err
	}
	defer f.src.Close()
	return f.batch(n)
}

// readKafkaGo reads the whole topic with a Reader of kafka-go for each partition.
func readKafkaGo(t topic, n int) error {
	ctx := context.Background()
	var got tally
	if err := pool.Run(ctx, kafkaPartitions, kafkaPartitions, func(ctx context.Context, _, i int) error {
		r := kafkago.NewReader(kafkago.ReaderConfig{
			Brokers: t.seeds(), Topic: t.Name, Partition: i, MaxBytes: 10 << 20, QueueCapacity: 1024,
			MaxWait: 250 * time.Millisecond, // else Close waits 10 s for the answer beyond the end
		})
		defer r.Close()
		if err := r.SetOffset(kafkago.FirstOffset); err != nil {
			return err
		}
		var records, bytes int64
		for ; records < int64(n/kafkaPartitions); records++ {
			m, err := r.FetchMessage(ctx)
			if err != nil {
				return err
			}
			bytes += int64(len(m.Value))
		}
		got.add(records, bytes)
		return nil
	}); err != nil {
		return err
	}
	return got.check(n)
}

// readFranz reads the whole topic with franz-go. EachRecord is its fastest way to hand out records.
func readFranz(t topic, n int) error {
	cl, err := t.client(kgo.ConsumeTopics(t.Name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cl.Close()
	var got tally
	for records, bytes := int64(0), int64(0); records < int64(n); {
		f := cl.PollFetches(context.Background())
		if err := f.Err(); err != nil {
			return err
		}
		f.EachRecord(func(r *kgo.Record) {
			records++
			bytes += int64(len(r.Value))
		})
		if records >= int64(n) {
			got.add(records, bytes)
		}
	}
	return got.check(n)
}
