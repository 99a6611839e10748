package reports

import (
	"context"
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

// keyRange is one batch of made-up records: keys [from, until), whose value
// says whether they are to be set or removed.
type keyRange struct {
	from, until int64
	remove      bool
}

// made is a source of records that exist only while they are read: a batch of
// millions takes no memory of the test's.
type made struct{ batches []keyRange }

func (m *made) Open(context.Context, *source.Plan) error     { return nil }
func (m *made) Committed(context.Context, source.Plan) error { return nil }
func (m *made) Close() error                                 { return nil }

// The offsets of a range say which batch and which keys it is.
func (m *made) Plan(_ context.Context, l source.Limits) (source.Plan, error) {
	at := int64(l.Epoch-1) << 32
	var n int64
	if b := int(l.Epoch - 1); b < len(m.batches) {
		n = m.batches[b].until - m.batches[b].from
	}
	return source.Plan{Ranges: []source.Range{{Partition: "made", From: at, Until: at + n}}}, nil
}

func (m *made) Read(_ context.Context, r source.Range, emit func(int64, record) error) error {
	if r.From == r.Until {
		return nil
	}
	b := m.batches[r.From>>32]
	for off := r.From; off < r.Until; off++ {
		if err := emit(off, record{b.from + off - r.From, b.remove}); err != nil {
			return err
		}
	}
	return nil
}

type record struct {
	id     int64
	remove bool
}

// big is a state of 24 bytes.
type big [3]int64

// keyed is a job with a 16-byte string key for every id and 24 bytes of state.
func keyed(src source.Source[record]) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		in := dstream.KeyBy(dstream.From(ssc, "in", src), func(r record) string {
			var k [16]byte
			binary.BigEndian.PutUint64(k[:], uint64(r.id)*0x9e3779b97f4a7c15)
			copy(k[8:], "padding.")
			return string(k[:])
		})
		states := dstream.MapWithState(in, dstream.FunctionTime(
			func(t time.Time, _ string, r dstream.Option[record], s *dstream.State[big]) (int, bool) {
				v, _ := r.Get()
				if v.remove {
					s.Remove()
				} else {
					s.Update(big{v.id, t.Unix(), s.OrElse(big{})[2] + 1})
				}
				return 0, false
			}).Named("op").NumPartitions(4))
		dstream.Print(states, 1, dstream.Name("out"))
		return nil
	}
}

// heap is what is live after a collection, beyond what was so before the run.
func heap() int64 {
	runtime.GC()
	runtime.GC() // finalizers and pools need the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// batchesOf cuts keys [from, until) in batches.
func batchesOf(from, until int64, remove bool) (all []keyRange) {
	const size = 250_000
	for ; from < until; from += size {
		all = append(all, keyRange{from, min(from+size, until), remove})
	}
	return all
}

// report 17: memory follows the live keys: after 99 % of five million keys are
// deleted, what is left takes no more than twice what so few keys need.
func TestMemoryFollowsLiveKeys(t *testing.T) {
	keys := int64(5_000_000)
	if testing.Short() || invariants.Enabled {
		keys = 500_000
	}
	left := keys / 100
	// What does not depend on keys: above all the row blocks that the run keeps
	// for its next batch, by the size of the greatest one (250,000 records).
	const fixed = 20 << 20

	grow := func(batches []keyRange) int64 {
		before := heap()
		kit := milltest.New(t, time.Second, keyed(&made{batches}))
		kit.DiscardOutput("out")
		kit.Tick(len(batches) + 30) // and some quiet batches: older versions are let go
		require.NoError(t, kit.Err())
		p := kit.Progress()
		require.Equal(t, left, p[len(p)-1].Operators[0].Keys)
		used := heap() - before
		require.NoError(t, kit.Stop())
		runtime.KeepAlive(kit)
		return used
	}
	need := grow(batchesOf(0, left, false))
	used := grow(append(batchesOf(0, keys, false), batchesOf(left, keys, true)...))
	t.Logf("%d keys need %d bytes; after %d keys of %d were deleted %d are in use", left, need, keys-left, keys, used)
	assert.LessOrEqual(t, used, 2*need+fixed)
}

// report 17: growing and shrinking ten times shows no upward trend.
func TestGrowShrinkHasNoTrend(t *testing.T) {
	keys := int64(500_000)
	if testing.Short() || invariants.Enabled {
		keys = 50_000
	}
	var batches []keyRange
	var ends []int
	for range 10 {
		batches = append(batches, keyRange{0, keys, false}, keyRange{keys / 100, keys, true})
		batches = append(batches, make([]keyRange, 3)...) // quiet
		ends = append(ends, len(batches))
	}
	kit := milltest.New(t, time.Second, keyed(&made{batches}))
	kit.DiscardOutput("out")
	var used []int64
	at := 0
	for _, end := range ends {
		kit.Tick(end - at)
		at = end
		used = append(used, heap())
	}
	require.NoError(t, kit.Err())
	first, last := used[1], used[len(used)-1]
	t.Logf("live heap after each cycle: %v", used)
	assert.LessOrEqual(t, last, first+first/10+(1<<20))
}

// report 18: no batch does the work of a full copy: what a batch costs is in
// proportion to what it changes, not to the size of the state. Bytes allocated
// stand for the work, since they do not depend on how busy the machine is; the
// times are logged, and the batch_p99 benchmark judges them.
func TestFlatBatchCost(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector and the invariants allocate beside what is measured here")
	}
	keys, n := int64(1_000_000), 200
	if testing.Short() {
		keys, n = 100_000, 50
	}
	const changed = 1000

	batches := batchesOf(0, keys, false)
	loaded := len(batches)
	for i := range n {
		from := int64(i) * changed % (keys - changed)
		batches = append(batches, keyRange{from, from + changed, false})
	}
	kit := milltest.New(t, time.Second, keyed(&made{batches}))
	kit.DiscardOutput("out")
	kit.Tick(loaded)
	runtime.GC()
	times, costs := make([]time.Duration, n), make([]int64, n)
	for i := range times {
		before, start := allocated(), time.Now()
		kit.Tick(1)
		times[i], costs[i] = time.Since(start), allocated()-before
	}
	require.NoError(t, kit.Err())
	for _, p := range kit.Progress()[loaded:] {
		require.EqualValues(t, changed, p.Operators[0].Changed)
		require.Equal(t, keys, p.Operators[0].Keys)
	}
	require.NoError(t, kit.Stop())
	p50, worst := rank(costs, 50), rank(costs, 100)
	t.Logf("bytes a batch: median %d, most %d; batch p50 %v p99 %v", p50, worst, rank(times, 50), rank(times, 99))
	// Undo, delta and pooled blocks of the changed keys fit many times; a copy of all keys does not.
	assert.Less(t, worst, int64(500*changed), "bytes allocated by the most expensive batch")
}

// allocated is the number of bytes that the process has allocated so far.
func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}
