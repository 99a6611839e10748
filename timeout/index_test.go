package timeout

import (
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func visits(x *Index, now int64) map[uint32]bool {
	got := map[uint32]bool{}
	x.Due(now, func(slot uint32) (int64, bool) { got[slot] = true; return 0, false })
	return got
}

func TestPassChangesNothingBeforeCommit(t *testing.T) {
	for _, x := range []*Index{NewIdle(10), NewDeadline(10)} {
		for s := range uint32(5) {
			x.Add(s, int64(s)*10)
		}
		x.Commit()
		live := map[uint32]int64{0: 0, 1: 10, 2: 20, 3: 30, 4: 40}
		require.Len(t, visits(x, 25), 3)
		x.Abort()
		require.NoError(t, x.Verify(maps.All(live)))
		require.Len(t, visits(x, 25), 3, "the retry finds the same")
		require.Len(t, visits(x, 25), 3, "a second pass replaces the first")
		x.Commit()
		require.NoError(t, x.Verify(maps.All(map[uint32]int64{3: 30, 4: 40})))
		require.Empty(t, visits(x, 25), "expired slots do not come again")
	}
}

func TestDeadlineEarlierThanItsHint(t *testing.T) {
	x := NewDeadline(10)
	x.Add(1, 1000)
	x.Commit()
	x.Add(1, 50)
	x.Commit()
	require.NoError(t, x.Verify(maps.All(map[uint32]int64{1: 50})))
	require.Equal(t, map[uint32]bool{1: true}, visits(x, 60))
	x.Commit()
	require.Empty(t, visits(x, 2000), "the later hint is stale and not visited")
}

// A deadline in the past set by this batch's data is due in this batch's pass.
func TestStagedHintsTakePartInThePass(t *testing.T) {
	x := NewDeadline(10)
	x.Add(7, 15)
	require.Equal(t, map[uint32]bool{7: true}, visits(x, 20))
	x.Commit()
	require.Zero(t, x.Len())
	x.Add(7, 15)
	require.Equal(t, map[uint32]bool{7: true}, visits(x, 20))
	x.Abort()
	require.Empty(t, visits(x, 20), "an aborted insert leaves nothing")
}

// A call of the pass sets a new deadline for its key, before or after the visit
// has answered.
func TestDeadlineSetByThePass(t *testing.T) {
	x := NewDeadline(10)
	x.Add(1, 10)
	x.Add(2, 10)
	x.Commit()
	x.Due(20, func(slot uint32) (int64, bool) {
		if slot == 1 {
			x.Add(slot, 90)
		}
		return 0, false
	})
	x.Add(2, 80)
	x.Commit()
	require.NoError(t, x.Verify(maps.All(map[uint32]int64{1: 90, 2: 80})))
	require.Equal(t, map[uint32]bool{2: true}, visits(x, 85))
}

// A freed slot's hint is legal and serves the next key in the slot.
func TestReusedSlot(t *testing.T) {
	x := NewIdle(10)
	x.Add(3, 10)
	x.Commit()
	x.Add(3, 55) // freed and reused: nothing to do
	x.Commit()
	require.Equal(t, 1, x.Len())
	require.NoError(t, x.Verify(maps.All(map[uint32]int64{3: 55})))
	n := 0
	x.Due(20, func(uint32) (int64, bool) { n++; return 55, true })
	x.Commit()
	require.Equal(t, 1, n)
	require.Empty(t, visits(x, 49), "moved to the bucket of its due time")
}

// Design 8: a clock that jumps ahead costs what is there, not what lies between.
func TestFarJump(t *testing.T) {
	for _, x := range []*Index{NewIdle(1), NewDeadline(1)} {
		x.Add(1, 0)
		x.Add(2, math.MaxInt64)
		x.Commit()
		live := map[uint32]int64{1: 0, 2: math.MaxInt64}
		for _, now := range []int64{math.MaxInt64 / 4, math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64} {
			looked := 0
			x.Due(now, func(slot uint32) (int64, bool) {
				looked++
				if live[slot] <= now {
					delete(live, slot)
				}
				return live[slot], live[slot] != 0
			})
			x.Commit()
			require.LessOrEqual(t, looked, 2)
			require.NoError(t, x.Verify(maps.All(live)))
		}
		require.Empty(t, live)
		require.Zero(t, x.Len())
	}
}

func TestExtremeTimes(t *testing.T) {
	for _, width := range []int64{-3, 0, 1, 7} {
		for _, x := range []*Index{NewIdle(width), NewDeadline(width)} {
			live := map[uint32]int64{0: math.MinInt64, 1: -1, 2: 0, 3: math.MaxInt64}
			for s, due := range live {
				x.Add(s, due)
			}
			x.Commit()
			require.NoError(t, x.Verify(maps.All(live)))
			next, ok := x.Next()
			require.True(t, ok)
			require.LessOrEqual(t, next, int64(math.MinInt64+1))
			require.True(t, visits(x, math.MinInt64+10)[0])
			x.Commit()
			require.Len(t, visits(x, math.MaxInt64), 3)
		}
	}
}

// A deadline moved to and fro for ever must not pile up hints.
func TestStaleHintsAreSwept(t *testing.T) {
	x := NewDeadline(10)
	live := map[uint32]int64{}
	for s := range uint32(100) {
		live[s] = 1_000_000
		x.Add(s, 1_000_000)
	}
	x.Commit()
	now := int64(0)
	for range 500 {
		for s := range uint32(100) {
			x.Add(s, now+20) // earlier: a hint is added
		}
		x.Commit()
		now += 30
		x.Due(now, func(uint32) (int64, bool) { return 1_000_000, true })
		x.Commit()
		require.Less(t, x.Len(), 100*2+1024+101)
	}
	require.NoError(t, x.Verify(maps.All(live)))
	require.Less(t, x.Bytes(), int64(40_000))
	require.Len(t, visits(x, 1_000_000), 100)
}

// n/T: with every key touched in every batch, a pass looks at about one in T.
func TestVisitsPerPass(t *testing.T) {
	const n, T = 10_000, 100
	x := NewIdle(1)
	updated := make([]int64, n)
	now := int64(T)
	for s := range uint32(n) {
		updated[s] = 1 + int64(s)%T
		x.Add(s, updated[s])
	}
	x.Commit()
	total := 0
	for range 10 * T {
		now++
		for s := range updated {
			updated[s] = now
		}
		x.Due(now-T-1, func(slot uint32) (int64, bool) { total++; return updated[slot], true })
		x.Commit()
	}
	require.Less(t, total, 10*n*3/2)
	require.Positive(t, total)
}

// Few buckets and few bytes, whatever the spread of the deadlines.
func TestBytesPerKey(t *testing.T) {
	const n = 200_000
	for name, x := range map[string]*Index{"idle": NewIdle(1), "deadline": NewDeadline(1)} {
		for s := range uint32(n) {
			x.Add(s, int64(s)*2_000_003%1_000_000_007) // a month of seconds times 400
		}
		x.Commit()
		x.Commit() // scratch of the load goes with the next round
		perKey := float64(x.Bytes()) / n
		t.Logf("%s: %.1f bytes a key, %d buckets", name, perKey, len(x.buckets))
		limit := 9.0
		if name == "deadline" {
			limit = 13
		}
		require.Less(t, perKey, limit)
	}
}

func TestRebuildForgetsAll(t *testing.T) {
	x := NewDeadline(10)
	x.Add(1, 10)
	x.Commit()
	x.Add(2, 10)
	x.Rebuild()
	x.Commit()
	require.Empty(t, visits(x, 1000))
	_, ok := x.Next()
	require.False(t, ok)
}

// Verify must be able to find each fault it speaks of.
func TestVerifyFindsFaults(t *testing.T) {
	make := func() *Index {
		x := NewIdle(10)
		x.Add(1, 100)
		x.Commit()
		return x
	}
	x := make()
	require.ErrorContains(t, x.Verify(maps.All(map[uint32]int64{1: 99})), "later")
	require.ErrorContains(t, x.Verify(maps.All(map[uint32]int64{2: 100})), "no hint")
	x.entries++
	require.ErrorContains(t, x.Verify(nil2), "counted")
	x = make()
	x.hinted.set(9)
	require.ErrorContains(t, x.Verify(nil2), "marked")
	x = make()
	x.order.push(77)
	require.ErrorContains(t, x.Verify(nil2), "in order")
	x = make()
	x.buckets[10] = append(x.buckets[10], 1)
	x.entries++
	require.ErrorContains(t, x.Verify(nil2), "two hints")
	x = NewDeadline(10)
	x.Add(1, 100)
	x.Commit()
	x.live++
	require.ErrorContains(t, x.Verify(nil2), "have hints")
}

func nil2(func(uint32, int64) bool) {}
