package readme

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"iter"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/sink/sqlsink"
)

// The programs of docs/from-spark.md, in its order; after them the tests that run
// those that the page only shows.

type total = dstream.Pair[string, int]

func wordCount(ssc *dstream.StreamingContext) error {
	lines := kafka.DirectStream(ssc, "lines", kafka.Brokers("localhost:9092"), kafka.Topics("lines"))
	words := dstream.FlatMap(lines, func(r kafka.Record) []string { return strings.Fields(r.Text()) })
	ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
	counts := dstream.MapWithState(ones, dstream.Function(
		func(word string, one dstream.Option[int], state *dstream.State[int]) total {
			if state.IsTimingOut() {
				return dstream.KV(word, -1)
			}
			sum := one.OrElse(0) + state.OrElse(0)
			state.Update(sum)
			return dstream.KV(word, sum)
		}).Named("counts").Timeout(time.Hour).NumPartitions(8))
	dstream.Print(counts, 10)
	return nil
}

func runWordCount(ctx context.Context) error {
	return dstream.Run(ctx, 10*time.Second, wordCount, dstream.WithCheckpoint("/var/lib/wordcount"))
}

type order struct {
	ID, Product string
	Cents       int64
}

func orders(ssc *dstream.StreamingContext) *dstream.DStream[order] {
	records := kafka.DirectStream(ssc, "orders",
		kafka.Brokers("localhost:9092"), kafka.Topics("orders"), kafka.FromEarliest(), kafka.Group("orders-job"))
	return dstream.MapErr(records, kafka.Values(kafka.JSON[order]()))
}

func logRanges(w io.Writer) dstream.ContextOption {
	return dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) {
		for _, src := range p.Sources {
			for _, r := range src.Ranges {
				fmt.Fprintf(w, "batch %d: %s %s [%d, %d)\n", p.Batch.Epoch, src.Name, r.Partition, r.From, r.Until)
			}
		}
	}})
}

func saveTotals(counts dstream.Stream[total]) {
	dstream.SaveAsTextFiles(counts, "out/totals", "txt")
}

func writeTotals(counts dstream.Stream[total], db *sql.DB) {
	table := sqlsink.New("totals", db, sqlsink.PostgreSQL)
	dstream.Output(counts, "totals", sqlsink.Exec(table,
		"INSERT INTO totals (word, n) VALUES ($1, $2) ON CONFLICT (word) DO UPDATE SET n = excluded.n",
		func(t total) []any { return []any{t.Key, t.Value} }))
}

func publishTotals(counts dstream.Stream[total]) {
	out := kafka.NewSink("published", kafka.Brokers("localhost:9092"))
	dstream.Output(counts, "published", kafka.To(out, "totals", func(t total) (kafka.Message, error) {
		return kafka.Message{Key: []byte(t.Key), Value: strconv.AppendInt(nil, int64(t.Value), 10)}, nil
	}))
}

func report(counts dstream.Stream[total], w io.Writer) {
	dstream.ForeachRDD(counts, func(ctx context.Context, b dstream.Batch, r *dstream.RDD[total]) error {
		top, err := rdd.Top(ctx, r, 3, func(a, b total) int { return cmp.Compare(a.Value, b.Value) })
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "epoch %d of %v: %v\n", b.Epoch, b.Time, top)
		return err
	}, dstream.Name("report"))
}

func lastHour(pairs dstream.Stream[total]) *dstream.DStream[total] {
	return dstream.ReduceByKeyAndWindowInverse(pairs,
		func(a, b int) int { return a + b },
		func(a, b int) int { return a - b },
		func(_ string, n int) bool { return n > 0 },
		time.Hour, time.Minute, dstream.Name("last hour"))
}

type orderName = dstream.Joined[order, dstream.Option[string]]

func named(ssc *dstream.StreamingContext, orders dstream.Stream[order]) *dstream.DStream[dstream.Pair[string, orderName]] {
	names := dstream.Parallelize(ssc, []dstream.Pair[string, string]{dstream.KV("ap", "apples"), dstream.KV("pe", "pears")})
	byProduct := dstream.KeyBy(orders, func(o order) string { return o.Product })
	return dstream.LeftOuterJoin(byProduct, dstream.Constant(ssc, names))
}

func sums(pairs dstream.Stream[total]) dstream.Stream[total] {
	return dstream.UpdateStateByKey(pairs, func(values []int, state dstream.Option[int]) dstream.Option[int] {
		sum := state.OrElse(0)
		for _, v := range values {
			sum += v
		}
		return dstream.Some(sum)
	}, dstream.Name("sums"))
}

func TestWordCountForgetsAndSurvives(t *testing.T) {
	kit := milltest.New(t, 10*time.Minute, wordCount)
	kit.Checkpoint()
	kit.DiscardOutput("counts")
	in := milltest.Input[kafka.Record](kit, "lines")
	in.Batch(kafka.Record{Value: []byte("to be or")}, kafka.Record{Value: []byte("not to be")})
	kit.Tick(1)
	kit.Crash() // as by a loss of power
	in.Batch(kafka.Record{Value: []byte("be")})
	kit.Tick(1)
	require.Equal(t, map[string]int{"to": 2, "be": 3, "or": 1, "not": 1}, milltest.State[string, int](kit, "counts"))
	kit.Tick(6) // an hour and ten minutes after the first batch: only "be" was seen since
	require.Equal(t, map[string]int{"be": 3}, milltest.State[string, int](kit, "counts"))
}

func takeOver(ssc *dstream.StreamingContext, totals iter.Seq2[string, int], until map[kafka.TopicPartition]int64) dstream.Stream[total] {
	lines := kafka.DirectStream(ssc, "lines", kafka.Brokers("localhost:9092"), kafka.Topics("lines"), kafka.FromOffsets(until))
	ones := dstream.MapPair(lines, func(r kafka.Record) (string, int) { return r.Text(), 1 })
	return dstream.MapWithState(ones, dstream.Function(
		func(word string, one dstream.Option[int], state *dstream.State[int]) total {
			sum := one.OrElse(0) + state.OrElse(0)
			state.Update(sum)
			return dstream.KV(word, sum)
		}).Named("counts").InitialState(totals))
}

// What needs a Kafka or a database is compiled, not run.
var _ = []any{runWordCount, saveTotals, writeTotals, publishTotals}

// streamOf runs a job of the page over totals, and gives what it made of them.
func streamOf[T any](t *testing.T, interval time.Duration, batches [][]total, job func(ssc *dstream.StreamingContext, in dstream.Stream[total]) dstream.Stream[T]) [][]T {
	kit := milltest.New(t, interval, func(ssc *dstream.StreamingContext) error {
		dstream.Print(job(ssc, dstream.QueueNamed(ssc, "in", 1, batches...)), 0, dstream.Name("out"))
		return nil
	})
	kit.Tick(len(batches))
	return milltest.Output[T](kit, "out")
}

func TestWordCountTellsWhatItForgets(t *testing.T) {
	kit := milltest.New(t, time.Hour, wordCount)
	milltest.Input[kafka.Record](kit, "lines").Batch(kafka.Record{Value: []byte("a a")})
	kit.Tick(3)
	require.Equal(t, [][]total{{{Key: "a", Value: 1}, {Key: "a", Value: 2}}, {}, {{Key: "a", Value: -1}}}, milltest.Output[total](kit, "counts"))
}

func TestOrdersAreNamedAndReported(t *testing.T) {
	var log strings.Builder
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		all := named(ssc, orders(ssc))
		dstream.Print(all, 0, dstream.Name("named"))
		report(dstream.Map(all, func(p dstream.Pair[string, orderName]) total { return dstream.KV(p.Key, int(p.Value.Left.Cents)) }), &log)
		return nil
	}, logRanges(&log))
	milltest.Input[kafka.Record](kit, "orders").Batch(
		kafka.Record{Value: []byte(`{"ID":"1","Product":"ap","Cents":50}`)},
		kafka.Record{Value: []byte(`{"ID":"2","Product":"fi","Cents":90}`)})
	kit.Tick(1)
	var got []string
	for _, o := range milltest.Output[dstream.Pair[string, orderName]](kit, "named")[0] {
		got = append(got, o.Value.Left.ID+" "+o.Value.Right.OrElse("unknown"))
	}
	require.ElementsMatch(t, []string{"1 apples", "2 unknown"}, got)
	require.Equal(t, "epoch 1 of 1970-01-01 00:00:01 +0000 UTC: [{fi 90} {ap 50}]\nbatch 1: orders 0 [0, 2)\n", log.String())
}

func TestLastHour(t *testing.T) {
	in := make([][]total, 61)
	in[0], in[1] = []total{{Key: "a", Value: 1}}, []total{{Key: "a", Value: 2}}
	out := streamOf(t, time.Minute, in, func(_ *dstream.StreamingContext, in dstream.Stream[total]) dstream.Stream[total] { return lastHour(in) })
	require.Equal(t, []total{{Key: "a", Value: 3}}, out[59])
	require.Equal(t, []total{{Key: "a", Value: 2}}, out[60])
}

func TestSums(t *testing.T) {
	in := [][]total{{{Key: "a", Value: 1}, {Key: "a", Value: 2}}, {}}
	out := streamOf(t, time.Second, in, func(_ *dstream.StreamingContext, in dstream.Stream[total]) dstream.Stream[total] { return sums(in) })
	require.Equal(t, [][]total{{{Key: "a", Value: 3}}, {{Key: "a", Value: 3}}}, out)
}

func TestTakeOver(t *testing.T) {
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		counts := takeOver(ssc, maps.All(map[string]int{"a": 40, "b": 1}), map[kafka.TopicPartition]int64{{Topic: "lines"}: 7})
		dstream.Print(counts, 0)
		return nil
	})
	milltest.Input[kafka.Record](kit, "lines").Batch(kafka.Record{Value: []byte("a")})
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 41, "b": 1}, milltest.State[string, int](kit, "counts"))
}
