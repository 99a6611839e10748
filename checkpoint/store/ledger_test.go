package store

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func every(n uint64) func(int) Policy { return func(int) Policy { return EveryVersions(n) } }

func delta(id Partition, v uint64, base bool) entry {
	return entry{id: id, name: fmt.Sprintf("%d/%d/%d/%d", id.Operator, id.Layout, id.Partition, v), size: 100, base: base}
}

func anyone(Partition) bool { return true }

// snap writes the snapshot that is due, if one is.
func snap(t require.TestingT, l *ledger) (Partition, bool) {
	id, ok := l.next(0, anyone)
	if ok {
		l.done(id, &file{version: l.newest, name: fmt.Sprint("snapshot ", id, l.newest), size: 10}, false, 0, 1)
	}
	return id, ok
}

// After a rescale the old layout's files stay until F has passed them, and hold
// F back no longer.
func TestOldLayoutGoesWithF(t *testing.T) {
	l := newLedger(2)
	old, young := Partition{1, 0, 0}, Partition{1, 1, 0}
	for v := uint64(1); v <= 4; v++ {
		l.committed(v, int64(v), 0, []entry{delta(old, v, false)}, every(2))
	}
	l.committed(5, 5, 0, []entry{delta(young, 5, true)}, every(2))
	require.Zero(t, l.nextFloor(math.MaxUint64), "one base is not two snapshots")
	for v := uint64(6); v <= 9; v++ {
		l.committed(v, int64(v), l.nextFloor(math.MaxUint64), []entry{delta(young, v, false)}, every(2))
		snap(t, l)
	}
	require.EqualValues(t, 5, l.floor)
	for v := 1; v <= 4; v++ {
		require.Contains(t, l.trash, fmt.Sprintf("1/0/0/%d", v))
	}
	require.NotContains(t, l.trash, "1/1/0/5")
	require.Len(t, l.accounts, 1)
	require.Equal(t, map[Partition]uint64{young: 9}, l.summary().Last)
}

// Of partitions that are due at once, of any operator, none comes twice before
// all have come once.
func TestFairness(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLedger(2)
		var ids []Partition
		for op := range rapid.IntRange(1, 3).Draw(rt, "operators") {
			for p := range rapid.IntRange(1, 5).Draw(rt, "partitions") {
				ids = append(ids, Partition{op + 1, 0, p})
			}
		}
		n := rapid.Uint64Range(1, 5).Draw(rt, "every")
		failing := rapid.SampledFrom(ids).Draw(rt, "failing")
		for v := uint64(1); v <= 6*n; v++ {
			var entries []entry
			for _, id := range ids {
				e := entry{id: id}
				if rapid.Bool().Draw(rt, "changed") {
					e = delta(id, v, false)
				}
				entries = append(entries, e)
			}
			l.committed(v, int64(v), l.nextFloor(math.MaxUint64), entries, every(n))
			seen := map[Partition]bool{}
			for {
				id, ok := l.next(int64(v), anyone)
				if !ok {
					break
				}
				require.False(rt, seen[id], "%v comes twice", id)
				seen[id] = true
				if id == failing {
					l.done(id, nil, true, int64(v), 1)
					continue
				}
				l.done(id, &file{version: v, name: fmt.Sprint("snapshot ", id, v), size: 1}, false, int64(v), 1)
			}
			for _, id := range ids {
				if id != failing {
					require.Less(rt, v-l.accounts[id].last, n, "%v is starved", id)
				}
			}
			require.Zero(rt, l.floor, "the failing one holds F")
			require.False(rt, slices.Contains(l.trash, "commits/1"))
		}
	})
}
