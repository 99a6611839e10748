package kafkatest

import (
	"strconv"
	"testing"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Report 30: records that cannot be parsed, and those that a stateful function refuses,
// are in the topic of dead letters as they were, with their origin, once the epoch is
// committed, beside the others' output; where that topic cannot be written the batch
// fails, and nothing of it is out.
func TestDeadLetters(t *testing.T) {
	onEach(t, func(r *rig) {
		in, out, dead := r.topic(2), r.topic(1), r.topic(1)
		two := value(1, "two")
		two.Headers = []kgo.RecordHeader{{Key: "own", Value: []byte("x")}}
		r.produce(r.client(), in, value(0, "1"), two, value(0, "3"), value(1, "13"), value(1, "4"))
		dir := r.TempDir()
		run := func(deadTopic string) error {
			u := kafka.NewSink("numbers", kafka.Brokers(r.addr))
			return r.run(func(ssc *dstream.StreamingContext) error {
				records := r.stream(ssc, in)
				numbers := dstream.MapErr(records, func(x kafka.Record) (int, error) { return strconv.Atoi(x.Text()) }).Named("parse")
				sums := dstream.MapWithState(dstream.KeyBy(numbers, func(int) string { return "all" }), dstream.Function(
					func(_ string, n dstream.Option[int], s *dstream.State[int]) int {
						s.Update(s.OrElse(0) + n.OrElse(0))
						if n.OrElse(0) == 13 {
							panic("unlucky")
						}
						return n.OrElse(0)
					}).Named("sum"))
				dstream.Output(sums, "numbers",
					kafka.To(u, out, func(n int) (kafka.Message, error) { return value0(strconv.Itoa(n * 10)), nil }))
				dstream.DeadLetters(records, "dead", kafka.DeadLetters(u, deadTopic))
				return nil
			}, dstream.WithCheckpoint(dir), dstream.WithIORetry(0))
		}
		require.ErrorIs(r, run("no-such-topic"), kafka.ErrNoTopic)
		require.NoError(r, r.settle(r.ctx))
		require.Empty(r, r.read(out), "nothing of a batch whose dead letters have no place")
		require.NoError(r, run(dead))
		require.NoError(r, r.settle(r.ctx))
		require.ElementsMatch(r, []string{"10", "30", "40"}, valuesOf(r.read(out)))
		letters := r.read(dead)
		require.Equal(r, []string{"two", "13"}, valuesOf(letters))
		own, _ := letters[0].Header("own")
		require.Equal(r, "x", string(own))
		for i, want := range []map[string]string{
			{kafka.HeaderOffset: "0", kafka.HeaderOperator: "parse", kafka.HeaderError: `strconv.Atoi: parsing "two": invalid syntax`},
			{kafka.HeaderOffset: "1", kafka.HeaderOperator: "sum", kafka.HeaderKey: "all", kafka.HeaderError: "panic: unlucky"},
		} {
			want[kafka.HeaderTopic], want[kafka.HeaderPartition] = in, "1"
			for key, text := range want {
				got, ok := letters[i].Header(key)
				require.True(r, ok, key)
				require.Equal(r, text, string(got), key)
			}
		}
	})
}

func valuesOf(records []kafka.Record) (out []string) {
	for _, x := range records {
		out = append(out, x.Text())
	}
	return out
}
