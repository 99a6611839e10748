package kafka_test

import (
	"context"
	"fmt"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
)

// The ranges of each batch, for a log of one's own. Here a queue stands for the broker:
// its name is the topic then.
func ExampleOffsetRanges() {
	job := func(ssc *dstream.StreamingContext) error {
		lines := dstream.QueueNamed(ssc, "lines", 2,
			[]kafka.Record{{Value: []byte("a")}, {Value: []byte("b")}, {Value: []byte("c")}}, []kafka.Record{{Value: []byte("d")}})
		dstream.ForeachRDD(lines, func(_ context.Context, b dstream.Batch, r *dstream.RDD[kafka.Record]) error {
			ranges, err := kafka.OffsetRanges(r) // of r itself, before any step
			for _, x := range ranges {
				fmt.Println(b.Epoch, x.Topic, x.Partition, x.From, x.Until, x.Count())
			}
			return err
		})
		return nil
	}
	if err := dstream.Run(context.Background(), 5*time.Millisecond, job, dstream.WithStopWhenDone()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1 lines 0 0 1 1
	// 1 lines 1 0 2 2
	// 2 lines 0 1 1 0
	// 2 lines 1 2 3 1
}

// A stream joined with a part of a topic. It needs a broker, so it is only compiled here.
func ExampleRDD() {
	job := func(ssc *dstream.StreamingContext) error {
		names, err := kafka.RDD([]kafka.OffsetRange{
			{TopicPartition: kafka.TopicPartition{Topic: "names", Partition: 0}, From: 0, Until: 1000},
			{TopicPartition: kafka.TopicPartition{Topic: "names", Partition: 1}, From: 0, Until: 1200},
		}, kafka.Brokers("localhost:9092"))
		if err != nil {
			return err
		}
		byID := dstream.KeyBy(dstream.Constant(ssc, names), func(r kafka.Record) string { return r.KeyText() })
		orders := kafka.DirectStream(ssc, "orders", kafka.Brokers("localhost:9092"), kafka.Topics("orders"))
		dstream.Print(dstream.Join(dstream.KeyBy(orders, func(r kafka.Record) string { return r.KeyText() }), byID), 10)
		return nil
	}
	_ = dstream.Run(context.Background(), 10*time.Second, job)
}
