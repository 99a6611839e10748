package statemap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Keys whose hashes collide on purpose turn their segment to a seeded hash.
func TestFlood(t *testing.T) {
	const n = 20_000
	m := newStrings[int64](t, Options[string]{Hash: func(k string) uint64 {
		if strings.HasPrefix(k, "evil") {
			return 0xBAD
		}
		var h uint64
		for _, c := range []byte(k) {
			h = mix(h ^ uint64(c) + 1)
		}
		return h
	}, Secret: 1})
	for i := range n {
		require.NoError(t, m.Put(fmt.Sprint("good", i), int64(i), 1))
		require.NoError(t, m.Put(fmt.Sprint("evil", i), int64(i), 1))
	}
	tab := tableOf[string, keyRef, int64](m)
	strong := 0
	for i := range tab.segs {
		seg := &tab.segs[i]
		if seg.strong {
			strong++
		}
		for p, v := range seg.cells {
			if v != 0 {
				require.Less(t, (uint64(p)-v>>32)&seg.mask, uint64(3*maxProbe), "cells near their home")
			}
		}
	}
	require.Equal(t, 1, strong, "only the flooded segment")
	require.NoError(t, verify(m))

	// Blocks find, insert and abort keys there too.
	prev := m
	m = copyOf(t, m)
	var b Block[string, int64]
	keys := manyKeys(BlockSize, func(i int) string { return fmt.Sprint("evil", n-32+i) })
	hashes := make([]uint64, len(keys))
	for i, k := range keys {
		hashes[i] = m.Hash(k)
	}
	require.NoError(t, m.Resolve(&b, hashes, keys))
	for i := range keys {
		s, exists, _ := b.Load(i)
		require.Equal(t, i < 32, exists)
		b.Set(i, s+1, 2)
	}
	require.NoError(t, m.Apply(&b))
	require.Len(t, b.Inserted(), 32)
	require.Equal(t, 2*n+32, m.Len())
	require.NoError(t, verify(m))
	require.NoError(t, m.Abort())
	require.NoError(t, verify(prev))
}

// Chance does not look like a flood.
func TestNoFloodByChance(t *testing.T) {
	m := newInts(t, Options[int]{})
	for i := range 300_000 {
		require.NoError(t, m.Put(i, i, 1))
	}
	tab := tableOf[int, int, int](m)
	for i := range tab.segs {
		require.False(t, tab.segs[i].strong)
	}
}

func TestInitialCapacity(t *testing.T) {
	m := newInts(t, Options[int]{InitialCapacity: 100_000})
	before := m.h.(*handle[int, int, int]).t.Load().index.heapBytes()
	for i := range 100_000 {
		require.NoError(t, m.Put(i, i, 1))
	}
	after := m.h.(*handle[int, int, int]).t.Load().index.heapBytes()
	require.LessOrEqual(t, after, before*5/4, "hardly a segment grew")
}

// A segment against a plain map: add, del, grow.
func TestSegment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		x.init(1)
		s := &x.segs[0]
		cells := map[uint32]uint64{} // slot → hash
		// Few different homes, so that clusters form and wrap around.
		hash := rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.SampledFrom([]uint64{0, 1, 7, 15, 0xFFFFFFFF, 1 << 31}).Draw(t, "hash")
		})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				slot := rapid.Uint32Range(0, 1000).Draw(t, "slot")
				if _, ok := cells[slot]; ok {
					return
				}
				cells[slot] = hash.Draw(t, "h")
				s.add(cells[slot], slot)
			},
			"del": func(t *rapid.T) {
				for slot, h := range cells {
					require.True(t, s.del(h, slot))
					require.False(t, s.del(h, slot))
					delete(cells, slot)
					break
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(cells), s.n)
				require.LessOrEqual(t, 4*s.n, 3*max(len(s.cells), 4))
				for slot, h := range cells {
					i := h & 0xFFFFFFFF & s.mask
					for s.cells[i] != h<<32|uint64(slot+1) {
						require.NotZero(t, s.cells[i], "slot %d is not reachable", slot)
						i = (i + 1) & s.mask
					}
				}
			},
		})
	})
}

// The arena against a plain map; undone in reverse order, adds leave no trace.
func TestArena(t *testing.T) {
	size := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(200, 300), rapid.SampledFrom([]int{1000, maxSmallKey, maxSmallKey + 1, bigKey, bigKey + 1}))
	rapid.Check(t, func(t *rapid.T) {
		var a arena
		refs, want := []keyRef{}, []string{}
		serial, dels := 0, 0
		add := func(t *rapid.T) keyRef {
			serial++
			n := size.Draw(t, "size")
			k := strings.Repeat(string(rune('a'+serial%26)), n)
			r := a.add(k)
			refs, want = append(refs, r), append(want, k)
			return r
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) { add(t) },
			"del": func(t *rapid.T) {
				if len(refs) == 0 {
					return
				}
				i := rapid.IntRange(0, len(refs)-1).Draw(t, "i")
				a.del(refs[i])
				dels++
				refs = append(refs[:i], refs[i+1:]...)
				want = append(want[:i], want[i+1:]...)
			},
			"undo": func(t *rapid.T) {
				used, total, off, pages := a.used, a.total, a.off, len(a.pages)
				free := fmt.Sprint(a.free)
				n := rapid.IntRange(1, 9).Draw(t, "n")
				var rs []keyRef
				for range n {
					rs = append(rs, add(t))
				}
				for i := range rs {
					a.rewind(rs[n-1-i])
				}
				refs, want = refs[:len(refs)-n], want[:len(want)-n]
				require.Equal(t, used, a.used)
				if dels == 0 {
					require.Equal(t, []int{total, int(off), pages}, []int{a.total, int(a.off), len(a.pages)})
					require.Equal(t, free, fmt.Sprint(a.free))
				} else { // a reused cell at the end of the last page goes back to the page
					require.LessOrEqual(t, a.total, total)
				}
			},
			"": func(t *rapid.T) {
				for i, r := range refs {
					require.Equal(t, want[i], a.bytes(r))
					require.True(t, a.equal(r, want[i]))
					require.False(t, a.equal(r, want[i]+"x"))
				}
				require.GreaterOrEqual(t, a.total, a.used)
			},
		})
	})
}
