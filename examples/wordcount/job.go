package main

import (
	"context"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// wordTotal is what the job emits for every word it sees: the word and how
// often it has been seen so far.
type wordTotal = dstream.Pair[string, int64]

// job counts the words of lines. That is the whole of it; the rest of this
// program finds text, shows results and checks them.
func job(lines lines, partitions int, out outputs) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		lines := lines(ssc)
		words := dstream.FlatMapEmit(lines, func(line string, emit func(string)) error {
			eachWord(line, emit)
			return nil
		})
		ones := dstream.MapPair(words, func(word string) (string, int64) { return word, 1 })
		counts := dstream.MapWithState(ones, dstream.Function(
			func(word string, one dstream.Option[int64], state *dstream.State[int64]) wordTotal {
				total := state.OrElse(0) + one.OrElse(0)
				state.Update(total)
				return dstream.KV(word, total)
			}).Named("counts").NumPartitions(partitions))
		dstream.ForeachRDD(counts, out.counts, dstream.Name("top words"))
		dstream.ForeachRDD(counts.StateSnapshots(), out.totals, dstream.Name("totals"))
		return nil
	}
}

// outputs are the job's two outputs: the totals that a batch changed, and all
// totals after it.
type outputs interface {
	counts(ctx context.Context, b dstream.Batch, changed *rdd.RDD[wordTotal]) error
	totals(ctx context.Context, b dstream.Batch, all *rdd.RDD[wordTotal]) error
}

// lines makes the stream of lines.
type lines func(ssc *dstream.StreamingContext) *dstream.DStream[string]

// fromTopic reads the lines from a Kafka topic: each record's value is one.
func fromTopic(brokers []string, topic string) lines {
	return func(ssc *dstream.StreamingContext) *dstream.DStream[string] {
		records := kafka.DirectStream(ssc, "text", kafka.Brokers(brokers...), kafka.Topics(topic), kafka.FromEarliest())
		return dstream.Map(records, kafka.Record.Text)
	}
}

// fromSource reads the lines without Kafka.
func fromSource(text source.Source[string]) lines {
	return func(ssc *dstream.StreamingContext) *dstream.DStream[string] { return dstream.From(ssc, "text", text) }
}
