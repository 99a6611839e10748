package staterdd

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/statemap"
)

func heapNow() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

type visit struct {
	Page string
	At   time.Time
}

type profile struct {
	Name   string
	Visits []visit
	Seen   map[string]int
	Best   *visit
}

// checkFootprint fills a map and compares what the heap has grown by with the estimate.
func checkFootprint[K comparable, S any](t *testing.T, name string, key func(i int) K, state func(i int) S) {
	n := 20_000
	if invariants.Enabled { // the race detector is slow, and pads allocations
		t.Skip("the race detector changes what allocations take")
	}
	t.Run(name, func(t *testing.T) {
		before := heapNow()
		m, err := statemap.New[K, S](statemap.Options[K]{})
		require.NoError(t, err)
		for i := range n {
			require.NoError(t, m.Put(key(i), state(i), 1))
		}
		c, err := m.Copy()
		require.NoError(t, err)
		m.Release()
		grown := heapNow() - before
		got := c.HeapBytes() + int64(NewFootprint[K, S]().PerKey(0, nil, c)*float64(c.Len()))
		require.InEpsilon(t, grown, got, 0.1, "the heap has grown by %d, the estimate is %d", grown, got)
		runtime.KeepAlive(c)
	})
}

// Design 7: the accounting is within 10 % of the measured growth of the heap.
func TestFootprint(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := func(max int) string { return strings.Repeat("x", 1+rng.IntN(max)) }
	num := func(i int) int { return i }
	checkFootprint(t, "ints", num, func(i int) int64 { return int64(i) })
	checkFootprint(t, "short strings", num, func(int) string { return text(14) })
	checkFootprint(t, "strings", func(i int) string { return fmt.Sprint("key-", i) }, func(int) string { return text(200) })
	checkFootprint(t, "bytes", num, func(int) []byte { return []byte(text(2000)) })
	checkFootprint(t, "small maps", num, func(int) map[string]int {
		out := map[string]int{}
		for i := range rng.IntN(8) {
			out[fmt.Sprint("field", i)] = i
		}
		return out
	})
	checkFootprint(t, "maps", num, func(int) map[int64]int64 {
		out := map[int64]int64{}
		for i := range rng.Int64N(100) {
			out[i] = i
		}
		return out
	})
	checkFootprint(t, "keys with strings", func(i int) visit { return visit{Page: fmt.Sprint("page-", i)} }, func(i int) int64 { return int64(i) })
	checkFootprint(t, "structs", num, func(i int) profile {
		p := profile{Name: text(30), Seen: map[string]int{"a": 1}}
		for range rng.IntN(10) {
			p.Visits = append(p.Visits, visit{Page: text(60)})
		}
		if i%2 == 0 {
			p.Best = &visit{Page: text(20)}
		}
		return p
	})
}

// A state that is larger than what is looked at is estimated by its first part.
func TestFootprintOfLargeStates(t *testing.T) {
	m, err := statemap.New[int, []string](statemap.Options[int]{})
	require.NoError(t, err)
	state := make([]string, 100_000)
	for i := range state {
		state[i] = "0123456789abcdef0123456789abcdef"
	}
	require.NoError(t, m.Put(1, state, 1))
	want := 100_000 * (16 + 32)
	require.InEpsilon(t, want, NewFootprint[int, []string]().PerKey(0, nil, m), 0.02)
}

// Few large states among many small ones count in full.
func TestFootprintOfSkewedStates(t *testing.T) {
	num := func(i int) int { return i }
	sized := func(every, large, small int) func(i int) []byte {
		return func(i int) []byte {
			if i%every == every/2 {
				return make([]byte, large)
			}
			return make([]byte, small)
		}
	}
	checkFootprint(t, "1 MiB in 50 keys of 20000", num, sized(400, 1<<20, 10))
	checkFootprint(t, "100 KB in 1 % of the keys", num, sized(100, 100_000, 10))
	checkFootprint(t, "one large map", num, func(i int) map[int64]int64 {
		out := map[int64]int64{}
		for j := range int64(1) + int64(max(0, i-19_998))*100_000 {
			out[j] = j
		}
		return out
	})
}

// footprintOps drives an operator with []byte states and a timeout: a record is the length that
// the key's state gets, 0 removes it.
func footprintOps(t *testing.T) *fixture[int, int, []byte, int] {
	return start(t, Function(func(k int, v rdd.Option[int], s *State[[]byte]) int {
		switch n := v.OrElse(0); {
		case s.IsTimingOut():
		case n == 0:
			if s.Exists() {
				s.Remove()
			}
		default:
			s.Update(make([]byte, n))
		}
		return 0
	}).NumPartitions(2).Timeout(5*time.Nanosecond), Options{}, 0)
}

// The sum goes from version to version: after updates, removals, expiry, aborted versions and a
// load it is that of all keys added up anew, and what the heap has grown by.
func TestFootprintFollowsVersions(t *testing.T) {
	f := footprintOps(t)
	before := heapNow()
	foot := NewFootprint[int, []byte]()
	anew := 0
	check := func(prev, v *MapWithStateRDD[int, []byte, int]) {
		t.Helper()
		for i, rec := range v.Records() {
			m := rec.StateMap
			want := int64(0)
			for _, e := range m.All() {
				want += allocated(int64(cap(e.State)), false)
			}
			var from *statemap.Map[int, []byte]
			if prev != nil {
				from = prev.Records()[i].StateMap
				if foot.parts == nil || len(foot.parts) <= i || foot.parts[i].newest.of != from && foot.parts[i].before.of != from {
					anew++
				}
			}
			require.InDelta(t, want, foot.PerKey(i, from, m)*float64(m.Len()), 1)
			require.InDelta(t, want, foot.PerKey(i, from, m)*float64(m.Len()), 1, "asked again")
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	now := int64(0)
	data := func(n int) (out []rdd.Pair[int, int]) {
		for range n {
			size := 1 + rng.IntN(20)
			switch rng.IntN(100) {
			case 0:
				size = 300_000
			case 1, 2, 3, 4:
				size = 0
			}
			out = append(out, kv(rng.IntN(4000), size))
		}
		return out
	}
	for round := range 31 {
		now++
		n := 400
		if round == 30 { // the version before, which the heap has too, differs little
			n = 10
		}
		if now%4 == 0 { // measured, then given up
			gone, err := f.next(now, data(300)...)
			require.NoError(t, err)
			require.NoError(t, gone.Seal())
			check(f.cur, gone)
			require.NoError(t, gone.Abort())
		}
		next, err := f.next(now, data(n)...)
		require.NoError(t, err)
		require.NoError(t, next.Seal())
		check(f.cur, next)
		f.cur.Release()
		f.cur = next
		f.epoch++
	}
	require.LessOrEqual(t, anew, 2, "all keys are added up once only, in the first batch")
	if !invariants.Enabled {
		grown := heapNow() - before
		got := int64(0)
		for i, rec := range f.cur.Records() {
			m := rec.StateMap
			got += m.HeapBytes() + int64(foot.PerKey(i, nil, m)*float64(m.Len()))
		}
		require.Greater(t, grown, int64(1<<20))
		require.InEpsilon(t, grown, got, 0.1, "the heap has grown by %d, the estimate is %d", grown, got)
	}
	// A load: maps filled from outside, whose version came from none.
	maps := make([]*statemap.Map[int, []byte], 2)
	for i, rec := range f.cur.Records() {
		m, err := f.op.NewMap()
		require.NoError(t, err)
		for k, e := range rec.StateMap.All() {
			require.NoError(t, m.Put(k, e.State, e.Time))
		}
		maps[i] = m
	}
	loaded, err := f.op.FromMaps(Batch{Epoch: f.epoch, Time: at(now)}, maps)
	require.NoError(t, err)
	check(nil, loaded)
	f.cur.Release()
	f.cur = loaded
	next, err := f.next(now+10, data(10)...) // nearly all are due
	require.NoError(t, err)
	require.NoError(t, next.Seal())
	check(loaded, next)
	require.Less(t, next.Stats().Keys, loaded.Stats().Keys/2)
}
