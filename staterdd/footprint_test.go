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
		got := c.HeapBytes() + int64(NewFootprint[K, S]().PerKey(c)*float64(c.Len()))
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
	require.InEpsilon(t, want, NewFootprint[int, []string]().PerKey(m), 0.02)
}
