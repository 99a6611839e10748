package metamorphic

import (
	"fmt"
	"slices"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

// command is a record: what to do with the state of its key.
type command struct {
	Key string
	Op  byte // '+' adds N, '-' removes, '?' reads, '.' ignores
	N   int64
}

// settings must not change the answer.
type settings struct {
	workers, block, threshold int
	sourceParts, stateParts   int
}

func (s settings) String() string {
	return fmt.Sprintf("workers=%d block=%d threshold=%d source=%d state=%d", s.workers, s.block, s.threshold, s.sourceParts, s.stateParts)
}

// answer is all that can be seen of a run.
type answer struct {
	mapped   [][]string
	reduced  [][]dstream.Pair[string, string]
	snapshot []map[string]int64
	times    map[string]milltest.Timed[string]
}

// run plays the batches through a job of two stateful operators, one of which
// changes its state in place, and a reduction.
func run(t *rapid.T, batches [][]command, idle time.Duration, s settings) answer {
	var tb holder
	defer tb.clean()
	kit := milltest.New(&tb, time.Second, job(idle, s, source.NewQueue[command](1)))
	if s.workers > 0 {
		kit.Workers(s.workers)
	}
	if s.block > 0 {
		kit.BlockSize(s.block)
	}
	milltest.Input[command](kit, "commands").Partitions(s.sourceParts).Batches(batches...)
	kit.Tick(len(batches) + 4)
	if err := kit.Err(); err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	return answerOf(kit)
}

// answerOf collects the answer. Epochs without outputs, which changed the number of
// partitions, are left out.
func answerOf(kit *milltest.Kit) answer {
	a := answer{
		mapped:  batchesOf(milltest.Output[string](kit, "mapped")),
		reduced: batchesOf(milltest.Output[dstream.Pair[string, string]](kit, "reduced")),
		times:   milltest.StateTimes[string, string](kit, "text"),
	}
	for _, batch := range batchesOf(milltest.Output[dstream.Pair[string, int64]](kit, "snapshots")) {
		m := map[string]int64{}
		for _, p := range batch {
			m[p.Key] = p.Value
		}
		a.snapshot = append(a.snapshot, m)
	}
	return a
}

func batchesOf[T any](outputs [][]T) [][]T {
	return slices.DeleteFunc(outputs, func(batch []T) bool { return batch == nil })
}

func job(idle time.Duration, s settings, in source.Source[command]) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		commands := dstream.From(ssc, "commands", in)
		byKey := dstream.KeyBy(dstream.Filter(commands, func(c command) bool { return c.Op != 0 }), func(c command) string { return c.Key })

		sums := dstream.MapWithState(byKey, dstream.FunctionTime(sum).Named("sums").
			Timeout(idle).NumPartitions(s.stateParts).DeltaChainThreshold(s.threshold))
		texts := dstream.MapWithState(byKey, dstream.FunctionTime(history).Named("history").
			NumPartitions(s.stateParts).DeltaChainThreshold(s.threshold))
		lengths := dstream.MapWithState(texts, dstream.FunctionTime(
			func(_ time.Time, _ string, v dstream.Option[string], st *dstream.State[string]) (string, bool) {
				text, _ := v.Get()
				st.Update(text)
				return "", false
			}).Named("text").NumPartitions(s.stateParts).DeltaChainThreshold(s.threshold))
		ops := dstream.MapValues(byKey, func(c command) string { return fmt.Sprintf("%c%d", c.Op, c.N) })

		dstream.Print(sums, 1, dstream.Name("mapped"))
		dstream.Print(sums.StateSnapshots(), 1, dstream.Name("snapshots"))
		dstream.Print(lengths, 1, dstream.Name("nothing"))
		dstream.Print(dstream.ReduceByKey(ops, func(a, b string) string { return a + b }, dstream.NumPartitions(s.stateParts)), 1, dstream.Name("reduced"))
		return nil
	}
}

func sum(batch time.Time, key string, v dstream.Option[command], s *dstream.State[int64]) (string, bool) {
	if s.IsTimingOut() {
		return fmt.Sprintf("%d %s timeout %d", batch.Unix(), key, s.Get()), true
	}
	c, _ := v.Get()
	switch c.Op {
	case '+':
		s.Update(s.OrElse(0) + c.N)
	case '-':
		s.Remove()
		return fmt.Sprintf("%d %s removed", batch.Unix(), key), true
	case '.':
		return "", false
	}
	return fmt.Sprintf("%d %s %c %d", batch.Unix(), key, c.Op, s.OrElse(-1)), true
}

// history changes a slice and a map in place: the copy on first touch is what
// keeps other versions whole.
func history(_ time.Time, key string, v dstream.Option[command], s *dstream.State[map[string][]int64]) (dstream.Pair[string, string], bool) {
	c, _ := v.Get()
	m := s.OrElse(map[string][]int64{})
	m[string(c.Op)] = append(m[string(c.Op)], c.N)
	s.Update(m)
	return dstream.KV(key, fmt.Sprint(m)), true
}

// holder is the test of one kit, so that a run can be ended before the next.
type holder struct {
	testing.TB
	cleanups []func()
}

func (h *holder) Helper()                           {}
func (h *holder) Cleanup(f func())                  { h.cleanups = append(h.cleanups, f) }
func (h *holder) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (h *holder) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (h *holder) clean() {
	for _, f := range slices.Backward(h.cleanups) {
		f()
	}
}

func commands() *rapid.Generator[[][]command] {
	c := rapid.Custom(func(t *rapid.T) command {
		return command{
			Key: rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "", "key with more bytes than others"}).Draw(t, "key"),
			Op:  rapid.SampledFrom([]byte("+++-?.")).Draw(t, "op"),
			N:   rapid.Int64Range(-3, 3).Draw(t, "n"),
		}
	})
	return rapid.SliceOfN(rapid.SliceOfN(c, 0, 40), 1, 8)
}

// byKeyOrder sorts texts that begin with "time key" stably by key: what is left
// is the order of each key's own.
func perKey(batches [][]string) [][]string {
	out := make([][]string, len(batches))
	for i, b := range batches {
		out[i] = slices.Clone(b)
		sort.SliceStable(out[i], func(x, y int) bool { return keyOf(out[i][x]) < keyOf(out[i][y]) })
	}
	return out
}

func keyOf(text string) string {
	var sec int
	var rest string
	if n, _ := fmt.Sscanf(text, "%d", &sec); n == 1 {
		rest = text[len(fmt.Sprint(sec))+1:]
	}
	for _, op := range []string{" timeout ", " removed", " + ", " ? "} {
		if i := lastIndex(rest, op); i >= 0 {
			return rest[:i]
		}
	}
	return rest
}

func lastIndex(s, sub string) int {
	for i := len(s) - len(sub); i >= 0; i-- {
		if s[i:i+len(sub)] == sub {
			return i
		}
	}
	return -1
}

// Settings that must not show at all: the answer is the same in the same order.
func TestSameAnswerInTheSameOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		batches := commands().Draw(t, "batches")
		idle := time.Duration(rapid.IntRange(1, 4).Draw(t, "idle")) * time.Second
		parts := rapid.IntRange(1, 4).Draw(t, "state partitions")
		base := settings{workers: 1, threshold: 20, sourceParts: 1, stateParts: parts}
		want := run(t, batches, idle, base)
		for _, other := range []settings{
			{workers: 4, threshold: 20, sourceParts: 1, stateParts: parts},
			{workers: 2, threshold: 1, sourceParts: 1, stateParts: parts},
			{workers: 1, threshold: 3, sourceParts: 1, stateParts: parts, block: 1},
			{workers: 3, threshold: 20, sourceParts: 3, stateParts: parts, block: 3},
			{workers: 8, threshold: 2, sourceParts: 7, stateParts: parts, block: 64},
		} {
			got := run(t, batches, idle, other)
			same(t, other, "mapped", want.mapped, got.mapped)
			same(t, other, "reduced", want.reduced, got.reduced)
			same(t, other, "snapshots", want.snapshot, got.snapshot)
			same(t, other, "state times", want.times, got.times)
		}
	})
}

// Another number of state partitions moves keys about; what each key sees, and
// the states, stay the same.
func TestSameAnswerWithOtherPartitions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		batches := commands().Draw(t, "batches")
		idle := time.Duration(rapid.IntRange(1, 4).Draw(t, "idle")) * time.Second
		want := run(t, batches, idle, settings{workers: 1, threshold: 20, sourceParts: 1, stateParts: 1})
		for _, other := range []settings{
			{workers: 2, threshold: 20, sourceParts: 1, stateParts: 2},
			{workers: 2, threshold: 2, sourceParts: 3, stateParts: 7},
			{workers: 4, threshold: 5, sourceParts: 2, stateParts: 64, block: 2},
		} {
			got := run(t, batches, idle, other)
			same(t, other, "mapped, key by key", perKey(want.mapped), perKey(got.mapped))
			same(t, other, "snapshots", want.snapshot, got.snapshot)
			same(t, other, "state times", want.times, got.times)
		}
	})
}

// same compares by text: it prints both sides when they differ.
func same(t *rapid.T, s settings, what string, want, got any) {
	if w, g := fmt.Sprint(want), fmt.Sprint(got); w != g {
		t.Fatalf("%v: %s differ:\nwant %s\ngot  %s", s, what, w, g)
	}
}
