package kafkatest

import (
	"strconv"
	"testing"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/stretchr/testify/require"
)

// parsed is a number, or why there is none.
type parsed struct {
	n    int
	dead []kafka.DeadLetter
}

// TestDeadLetters: records that cannot be parsed are in the topic of dead letters with
// their origin once the epoch is committed, beside the others' output; where that
// topic cannot be written the batch fails, and nothing of it is out.
func TestDeadLetters(t *testing.T) {
	onEach(t, func(r *rig) {
		in, out, dead := r.topic(2), r.topic(1), r.topic(1)
		r.produce(r.client(), in, value(0, "1"), value(1, "two"), value(0, "3"), value(1, "4"))
		dir := r.TempDir()
		run := func(deadTopic, name string) error {
			u := kafka.NewSink(name, kafka.Brokers(r.addr))
			return r.run(func(ssc *dstream.StreamingContext) error {
				all := dstream.Map(r.stream(ssc, in), func(x kafka.Record) parsed {
					n, err := strconv.Atoi(x.Text())
					if err != nil {
						x.Value, x.Key = append([]byte{}, x.Value...), nil
						return parsed{dead: []kafka.DeadLetter{kafka.NewDeadLetter(x, "parse", err)}}
					}
					return parsed{n: n}
				})
				dstream.Output(dstream.Filter(all, func(p parsed) bool { return p.dead == nil }), "numbers",
					kafka.To(u, out, func(p parsed) (kafka.Message, error) { return value0(strconv.Itoa(p.n * 10)), nil }))
				dstream.Output(dstream.FlatMap(all, func(p parsed) []kafka.DeadLetter { return p.dead }), "dead", kafka.DeadLetters(u, deadTopic))
				return nil
			}, dstream.WithCheckpoint(dir), dstream.WithIORetry(0))
		}
		require.ErrorIs(r, run("no-such-topic", "numbers"), kafka.ErrNoTopic)
		require.NoError(r, r.settle(r.ctx))
		require.Empty(r, r.read(out), "nothing of a batch whose dead letters have no place")
		require.NoError(r, run(dead, "numbers"))
		require.NoError(r, r.settle(r.ctx))
		require.ElementsMatch(r, []string{"10", "30", "40"}, valuesOf(r.read(out)))
		letters := r.read(dead)
		require.Len(r, letters, 1)
		require.Equal(r, "two", letters[0].Text())
		for key, want := range map[string]string{kafka.HeaderTopic: in, kafka.HeaderPartition: "1", kafka.HeaderOffset: "0",
			kafka.HeaderOperator: "parse", kafka.HeaderError: `strconv.Atoi: parsing "two": invalid syntax`} {
			got, ok := letters[0].Header(key)
			require.True(r, ok, key)
			require.Equal(r, want, string(got), key)
		}
	})
}

func valuesOf(records []kafka.Record) (out []string) {
	for _, x := range records {
		out = append(out, x.Text())
	}
	return out
}
