package kafka_test

import (
	"context"
	"strings"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
)

// A running count of the words of a topic. It needs a broker, so it is only
// compiled here.
func ExampleDirectStream() {
	job := func(ssc *dstream.StreamingContext) error {
		lines := kafka.DirectStream(ssc, "lines", kafka.Brokers("localhost:9092"), kafka.Topics("test"), kafka.FromEarliest())
		words := dstream.FlatMap(lines, func(r kafka.Record) []string { return strings.Fields(r.Text()) })
		ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
		counts := dstream.MapWithState(ones, dstream.Function(
			func(word string, one dstream.Option[int], state *dstream.State[int]) dstream.Pair[string, int] {
				sum := one.OrElse(0) + state.OrElse(0)
				state.Update(sum)
				return dstream.KV(word, sum)
			}).Named("counts"))
		dstream.Print(counts, 10)
		return nil
	}
	_ = dstream.Run(context.Background(), 10*time.Second, job)
}

// Orders by item, from JSON values; a record that is no order is skipped and counted.
func ExampleValues() {
	type order struct {
		Item  string
		Count int
	}
	var health kafka.Monitor
	job := func(ssc *dstream.StreamingContext) error {
		records := kafka.DirectStream(ssc, "orders", kafka.Brokers("localhost:9092"), kafka.TopicPattern("orders-.*"),
			kafka.FromEarliest(), kafka.Group("orders-job"), kafka.Watch(&health))
		orders := dstream.MapErr(records, kafka.Values(kafka.JSON[order]()))
		byItem := dstream.MapPair(orders, func(o order) (string, int) { return o.Item, o.Count })
		dstream.Print(dstream.ReduceByKey(byItem, func(a, b int) int { return a + b }), 10)
		return nil
	}
	_ = dstream.Run(context.Background(), 10*time.Second, job, dstream.WithRecordPolicy(dstream.Skip))
}

// What is no order goes to a topic of its own, as it came, with the commit of its batch.
func ExampleDeadLetters() {
	type order struct {
		Item  string
		Count int
	}
	job := func(ssc *dstream.StreamingContext) error {
		out := kafka.NewSink("orders-job", kafka.Brokers("localhost:9092"))
		records := kafka.DirectStream(ssc, "orders", kafka.Brokers("localhost:9092"), kafka.Topics("orders"))
		orders := dstream.MapErr(records, kafka.Values(kafka.JSON[order]())).Named("parse")
		items := dstream.Filter(orders, func(o order) bool { return o.Count > 0 })
		dstream.Output(items, "items", kafka.To(out, "items", func(o order) (kafka.Message, error) {
			return kafka.Message{Key: []byte(o.Item)}, nil
		}))
		dstream.DeadLetters(records, "dead", kafka.DeadLetters(out, "orders.dead"))
		return nil
	}
	_ = dstream.Run(context.Background(), 10*time.Second, job, dstream.WithCheckpoint("orders-ckpt"))
}
