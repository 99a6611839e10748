package exactlyonce

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// letterJob counts words. The word b cannot be read, and c cannot be counted: both go to
// the dead letters, in the folder of the totals and in a Kafka of their own.
func (l *life) letterJob(tag string) {
	words := dstream.From(l.ssc, "words", l.w.script())
	good := dstream.MapErr(words, func(w string) (string, error) {
		if w == "b" {
			return "", fmt.Errorf("%q cannot be read", w)
		}
		return w, nil
	}).Named("read")
	counts := dstream.MapWithState(dstream.MapPair(good, func(w string) (string, int) { return w, 1 }), dstream.Function(
		func(w string, one dstream.Option[int], s *dstream.State[int]) string {
			s.Update(s.OrElse(0) + one.OrElse(0))
			if w == "c" {
				panic("c cannot be counted")
			}
			return fmt.Sprintf("%s=%d", w, s.Get())
		}).Named("count").NumPartitions(2))
	a := sink.NewFiles("a", l.w.store("out", tag, l.in))
	dstream.Output(counts, "totals", sink.Lines(a, sink.Text[string]))
	text := func(dst []byte, d dstream.Letter[string]) ([]byte, error) {
		return fmt.Appendf(dst, "%s by %s: %s", d.Record.OrElse("?"), d.Operator, d.Reason()), nil
	}
	dstream.DeadLetters(words, "dead", sink.Lines(a, text))
	dstream.DeadLetters(words, "dead too", sink.Sink[dstream.Letter[string]]{Unit: l.w.kafka.Unit("k", l.in), Target: "dead", Encode: text})
}

// lettersWanted is what readers see of the job: of each epoch its good rows, and each
// of its bad ones once in both places.
const lettersWanted = `a 1 dead/0 b by read: "b" cannot be read
a 1 totals/1 a=1
a 1 totals/1 a=2
a 2 dead/0 c by count: panic: c cannot be counted
a 4 dead/0 b by read: "b" cannot be read
a 4 dead/0 c by count: panic: c cannot be counted
a 4 totals/0 d=1
a 4 totals/1 a=3
k 1 dead too/0 b by read: "b" cannot be read
k 2 dead too/0 c by count: panic: c cannot be counted
k 4 dead too/0 b by read: "b" cannot be read
k 4 dead too/0 c by count: panic: c cannot be counted`

// Report 30, dead letter: delivered once, with the commit. The machine loses power before
// every call to the disk or the Kafka, and after it; some of its tasks are guarded.
func TestDeadLettersOnce(t *testing.T) {
	step, calls := 1, 0
	if testing.Short() {
		step = 7
	}
	for at := 1; ; at += step {
		w := newWorld(t, "ak", true)
		w.other = (*life).letterJob
		in := &vfs.Faults{}
		in.Fail(vfs.Rule{K: at, After: at%3 == 0, Dead: true})
		err := w.life(in).run()
		if in.Hits() == 0 {
			require.NoError(t, err)
			require.Equal(t, lettersWanted, sorted(w.sees()))
			break
		}
		require.Error(t, err, "call %d", at)
		calls++
		w.crash(uint64(at), at%2*50)
		require.NoError(t, w.life(nil).run(), "call %d", at)
		require.Equal(t, lettersWanted, sorted(w.sees()), "call %d", at)
	}
	require.Greater(t, calls, 15)
	t.Log(calls, "crashes")
}

// Report 30: a sink of dead letters that fails, fails the batch. Nothing of it is out, and
// nothing is committed; when the sink works again the next run delivers all.
func TestDeadLettersThatFail(t *testing.T) {
	w := newWorld(t, "ak", true)
	w.other = (*life).letterJob
	in := &vfs.Faults{}
	in.Fail(vfs.Rule{Path: "k/write", Forever: true})
	err := w.life(in).run()
	require.Error(t, err)
	require.Positive(t, in.Hits())
	require.Empty(t, w.kafka.Rows())
	require.NotContains(t, w.sees(), "a 2", "%v", err)
	w.later()
	l := w.life(nil)
	require.NoError(t, l.run())
	require.Equal(t, lettersWanted, sorted(w.sees()))
	require.NotContains(t, strings.Join(l.note, "\n"), "differs")
}
