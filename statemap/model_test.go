package statemap

import (
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is a state machine: random calls on any number of live handles of any
// number of lineages, each compared with a plain map.
type model[K comparable, S any] struct {
	keys    []K
	state   func(n int) S
	opts    Options[K]
	live    []*modelHandle[K, S]
	jobs    []func() // what Options.Background was given and has not run yet
	readers []*modelReader[K, S]
	block   Block[K, S]
	now     int64
	serial  int
	rank    map[K]int // of keys, in compare
}

type modelHandle[K comparable, S any] struct {
	m       *Map[K, S]
	now     map[K]Entry[S] // what the version holds
	before  map[K]Entry[S] // what it began with
	touched []K            // keys in the order of the version's first writes
	has     map[K]bool     // set of touched
	aborted bool
}

type modelReader[K comparable, S any] struct {
	h    *modelHandle[K, S]
	want map[K]Entry[S]
	got  map[K]Entry[S]
	next func() (K, Entry[S], bool)
	stop func()
}

func (h *modelHandle[K, S]) touch(k K) {
	if !h.has[k] {
		h.has[k] = true
		h.touched = append(h.touched, k)
	}
}

func (h *modelHandle[K, S]) set(k K, e Entry[S]) {
	h.touch(k)
	h.now[k] = e
}

func (h *modelHandle[K, S]) remove(k K) {
	if _, ok := h.now[k]; ok {
		h.touch(k)
		delete(h.now, k)
	}
}

func (h *modelHandle[K, S]) delta() []DeltaEntry[K, S] {
	out := []DeltaEntry[K, S]{}
	for _, k := range h.touched {
		if e, ok := h.now[k]; ok {
			out = append(out, DeltaEntry[K, S]{Key: k, State: e.State, Time: e.Time})
		} else if _, ok := h.before[k]; ok {
			out = append(out, DeltaEntry[K, S]{Key: k, Removed: true})
		}
	}
	return out
}

func (x *model[K, S]) fresh() (S, int64) {
	x.serial++
	x.now++
	return x.state(x.serial), x.now
}

func (x *model[K, S]) add(t *rapid.T) *modelHandle[K, S] {
	m, err := New[K, S](x.opts)
	require.NoError(t, err)
	h := &modelHandle[K, S]{m: m, now: map[K]Entry[S]{}, before: map[K]Entry[S]{}, has: map[K]bool{}}
	x.live = append(x.live, h)
	return h
}

func (x *model[K, S]) pick(t *rapid.T, f func(*modelHandle[K, S]) bool) *modelHandle[K, S] {
	var fit []*modelHandle[K, S]
	for _, h := range x.live {
		if f(h) {
			fit = append(fit, h)
		}
	}
	if len(fit) == 0 {
		h := x.add(t)
		if !f(h) {
			h.m.Seal()
		}
		return h
	}
	// The newest handles are the interesting ones.
	i := rapid.IntRange(0, len(fit)-1).Draw(t, "handle")
	return fit[len(fit)-1-i]
}

func (x *model[K, S]) open(t *rapid.T) *modelHandle[K, S] {
	return x.pick(t, func(h *modelHandle[K, S]) bool { return !h.m.Sealed() })
}

func (x *model[K, S]) any(t *rapid.T) *modelHandle[K, S] {
	return x.pick(t, func(*modelHandle[K, S]) bool { return true })
}

func (x *model[K, S]) key(t *rapid.T) K { return rapid.SampledFrom(x.keys).Draw(t, "key") }

func (x *model[K, S]) forget(h *modelHandle[K, S]) {
	x.live = slices.DeleteFunc(x.live, func(o *modelHandle[K, S]) bool { return o == h })
}

func (x *model[K, S]) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"new": func(t *rapid.T) {
			if len(x.live) > 8 {
				return
			}
			x.add(t)
		},
		"put": func(t *rapid.T) {
			h, k := x.open(t), x.key(t)
			s, tm := x.fresh()
			require.NoError(t, h.m.Put(k, s, tm))
			h.set(k, Entry[S]{s, tm})
		},
		"remove": func(t *rapid.T) {
			h, k := x.open(t), x.key(t)
			require.NoError(t, h.m.Remove(k))
			h.remove(k)
		},
		"block":  x.doBlock,
		"block2": x.doBlock,
		"slots":  x.doSlots,
		"grow": func(t *rapid.T) {
			h := x.open(t)
			for _, k := range x.keys {
				s, tm := x.fresh()
				require.NoError(t, h.m.Put(k, s, tm))
				h.set(k, Entry[S]{s, tm})
			}
		},
		"shrink": func(t *rapid.T) {
			h := x.open(t)
			for _, k := range x.keys[len(x.keys)/8:] {
				require.NoError(t, h.m.Remove(k))
				h.remove(k)
			}
		},
		"copy":  x.doCopy,
		"copy2": x.doCopy,
		"release": func(t *rapid.T) {
			h := x.any(t)
			h.m.Release()
			h.m.Release()
			x.forget(h)
			x.checkReleased(t, h.m)
		},
		"abort": func(t *rapid.T) {
			h := x.any(t)
			newest := h.m.DeltaChainLength() == 0
			switch err := h.m.Abort(); {
			case err == nil:
				h.aborted = true
				x.forget(h)
				x.checkReleased(t, h.m)
			case newest || !errors.Is(err, ErrNotNewest):
				t.Fatalf("abort of a version with chain length %d: %v", h.m.DeltaChainLength(), err)
			}
		},
		"compact": func(t *rapid.T) {
			h := x.any(t)
			require.NoError(t, h.m.Compact())
			require.Zero(t, h.m.DeltaChainLength())
		},
		"seal": func(t *rapid.T) {
			h := x.open(t)
			h.m.Seal()
			s, tm := x.fresh()
			require.ErrorIs(t, h.m.Put(x.keys[0], s, tm), ErrSealed)
			require.ErrorIs(t, h.m.Remove(x.keys[0]), ErrSealed)
			require.ErrorIs(t, h.m.PutSlot(0, s, tm), ErrSealed)
			require.ErrorIs(t, h.m.Resolve(&x.block, nil, nil), ErrSealed)
			require.ErrorIs(t, h.m.Apply(&x.block), ErrSealed)
		},
		"background": func(t *rapid.T) {
			for _, job := range x.jobs {
				job()
			}
			x.jobs = nil
		},
		"export": func(t *rapid.T) {
			h := x.any(t)
			d, err := h.m.Export()
			require.NoError(t, err)
			m, err := Import(x.opts, d)
			require.NoError(t, err)
			require.Equal(t, h.now, maps.Collect(m.All()))
			require.NotPanics(t, func() { _ = h.m.DebugString() })
		},
		"reader": func(t *rapid.T) {
			h := x.pick(t, func(h *modelHandle[K, S]) bool { return h.m.Sealed() })
			r := &modelReader[K, S]{h: h, want: maps.Clone(h.now), got: map[K]Entry[S]{}}
			all := h.m.All()
			if rapid.Bool().Draw(t, "sorted") {
				all = h.m.Sorted(x.compare)
			}
			r.next, r.stop = iter.Pull2(all)
			r.step(t, 1) // the pin is taken at the first step
			x.readers = append(x.readers, r)
		},
		"read": func(t *rapid.T) {
			if len(x.readers) == 0 {
				return
			}
			i := rapid.IntRange(0, len(x.readers)-1).Draw(t, "reader")
			n := rapid.SampledFrom([]int{0, 1, 300, 1 << 20}).Draw(t, "steps")
			if r := x.readers[i]; n == 0 || !r.step(t, n) {
				r.stop()
				x.readers = slices.Delete(x.readers, i, i+1)
			}
		},
		"": x.check,
	}
}

// step reads on and reports whether the reader has more. A complete read gives
// what the version held, whatever happened to the handle but an abort.
func (r *modelReader[K, S]) step(t *rapid.T, n int) bool {
	for range n {
		k, e, ok := r.next()
		if !ok {
			if !r.h.aborted {
				require.Equal(t, r.want, r.got)
			}
			return false
		}
		_, twice := r.got[k]
		require.False(t, twice, "key %v read twice", k)
		require.Equal(t, r.want[k], e)
		r.got[k] = e
	}
	return true
}

func (x *model[K, S]) doCopy(t *rapid.T) {
	h := x.any(t)
	c, err := h.m.Copy()
	require.NoError(t, err)
	require.True(t, h.m.Sealed())
	require.False(t, c.Sealed())
	x.live = append(x.live, &modelHandle[K, S]{m: c, now: maps.Clone(h.now), before: maps.Clone(h.now), has: map[K]bool{}})
	if len(x.live) > 10 || rapid.Bool().Draw(t, "release") {
		h.m.Release()
		x.forget(h)
	}
}

func (x *model[K, S]) doBlock(t *rapid.T) {
	h := x.open(t)
	keys := rapid.SliceOfN(rapid.SampledFrom(x.keys), 0, BlockSize).Draw(t, "keys")
	hashes := make([]uint64, len(keys))
	for i, k := range keys {
		hashes[i] = h.m.Hash(k)
	}
	if rapid.IntRange(0, 9).Draw(t, "giveup") == 0 { // a block that fails is simply not applied
		require.NoError(t, h.m.Resolve(&x.block, hashes, keys))
		for i := range keys {
			s, tm := x.fresh()
			x.block.Set(i, s, tm)
		}
	}
	require.NoError(t, h.m.Resolve(&x.block, hashes, keys))
	own := map[K]bool{}
	for _, k := range h.touched {
		own[k] = true
	}
	was := maps.Clone(h.now)
	for i, k := range keys {
		s, exists, first := x.block.Load(i)
		e, ok := h.now[k]
		require.Equal(t, ok, exists, "key %v", k)
		if ok {
			require.Equal(t, e, Entry[S]{s, x.block.Time(i)}, "key %v", k)
		}
		if !own[k] {
			require.True(t, first, "key %v was not written", k)
		}
		switch s, tm := x.fresh(); rapid.IntRange(0, 3).Draw(t, "op") {
		case 0: // reads only: C4
		case 1:
			x.block.Set(i, s, tm)
			h.set(k, Entry[S]{s, tm})
			own[k] = true
			_, _, first = x.block.Load(i)
			require.False(t, first)
		case 2:
			x.block.Delete(i)
			h.remove(k)
			if ok {
				own[k] = true
			}
		case 3:
			x.block.Touch(i, tm)
			if ok {
				h.set(k, Entry[S]{e.State, tm})
			}
		}
	}
	require.NoError(t, h.m.Apply(&x.block))
	var ins []K
	for _, n := range x.block.Inserted() {
		k, _, _, live := h.m.SlotAt(n)
		require.True(t, live)
		ins = append(ins, k)
	}
	var want []K
	for k := range h.now {
		if _, ok := was[k]; !ok {
			want = append(want, k)
		}
	}
	require.ElementsMatch(t, want, ins)
	for i, k := range keys {
		if e, ok := h.now[k]; ok {
			n, has := x.block.Slot(i)
			require.True(t, has)
			sk, s, tm, live := h.m.SlotAt(n)
			vk, vs, vt, seen := h.m.SlotView(n)
			require.Equal(t, []any{sk, s, tm, live}, []any{vk, vs, vt, seen})
			require.True(t, live)
			require.Equal(t, k, sk)
			require.Equal(t, e, Entry[S]{s, tm})
		}
	}
	require.ErrorIs(t, h.m.Apply(&x.block), ErrBlock, "a block is applied once")
}

// doSlots is an expiry pass: some live slots are removed, some written.
func (x *model[K, S]) doSlots(t *rapid.T) {
	h := x.open(t)
	var slots []uint32
	h.m.AllSlots(func(n uint32, _ int64) bool { slots = append(slots, n); return true })
	require.Len(t, slots, len(h.now))
	for _, n := range slots {
		k, _, tm, live := h.m.SlotAt(n)
		require.True(t, live)
		require.Equal(t, h.now[k].Time, tm)
		switch rapid.IntRange(0, 7).Draw(t, "slot") {
		case 0:
			require.NoError(t, h.m.ExpireSlot(n))
			require.NoError(t, h.m.ExpireSlot(n))
			h.remove(k)
		case 1:
			s, tm := x.fresh()
			require.NoError(t, h.m.PutSlot(n, s, tm))
			h.set(k, Entry[S]{s, tm})
		}
	}
}

func (x *model[K, S]) checkReleased(t require.TestingT, m *Map[K, S]) {
	_, _, err := m.Get(x.keys[0])
	require.ErrorIs(t, err, ErrReleased) // R5
	s, tm := x.fresh()
	require.ErrorIs(t, m.Put(x.keys[0], s, tm), ErrReleased)
	require.ErrorIs(t, m.Remove(x.keys[0]), ErrReleased)
	require.ErrorIs(t, m.Resolve(&x.block, nil, nil), ErrReleased)
	require.ErrorIs(t, m.Apply(&x.block), ErrReleased)
	require.ErrorIs(t, m.ExpireSlot(0), ErrReleased)
	require.ErrorIs(t, m.Abort(), ErrReleased)
	require.ErrorIs(t, m.Compact(), ErrReleased)
	require.ErrorIs(t, m.Err(), ErrReleased)
	_, err = m.Copy()
	require.ErrorIs(t, err, ErrReleased)
	_, err = m.Delta()
	require.ErrorIs(t, err, ErrReleased)
	_, err = m.Export()
	require.ErrorIs(t, err, ErrReleased)
	for range m.All() {
		t.Errorf("a released handle yields")
	}
	for range m.Sorted(func(K, K) int { return 0 }) {
		t.Errorf("a released handle yields")
	}
	_, _, _, live := m.SlotAt(0)
	_, live2 := m.SlotTime(0)
	require.False(t, live || live2)
	require.Zero(t, m.Len()+m.ApproxSize()+m.DeltaLen()+m.DeltaChainLength())
	require.Zero(t, m.HeapBytes())
	require.Zero(t, m.Layout())
	require.Empty(t, m.DebugString())
}

// compare orders keys as they stand in keys, which is not how they come.
func (x *model[K, S]) compare(a, b K) int {
	if x.rank == nil {
		x.rank = map[K]int{}
		for i, k := range x.keys {
			x.rank[k] = i
		}
	}
	return x.rank[a] - x.rank[b]
}

// checkSorted looks at some handles only, so that the order that a table has kept is that of
// an older version, or of a newer one.
func (x *model[K, S]) checkSorted(t *rapid.T, h *modelHandle[K, S]) {
	got, last := map[K]Entry[S]{}, -1
	for k, e := range h.m.Sorted(x.compare) {
		require.Less(t, last, x.rank[k], "key %v", k)
		got[k], last = e, x.rank[k]
	}
	require.Equal(t, h.now, got)
}

// check compares every live handle with its model.
func (x *model[K, S]) check(t *rapid.T) {
	for i, h := range x.live {
		if (x.serial+i)%4 == 0 {
			x.checkSorted(t, h)
		}
		require.NoError(t, verify(h.m))
		require.Equal(t, len(h.now), h.m.Len())
		require.GreaterOrEqual(t, h.m.ApproxSize(), h.m.Len())
		require.Equal(t, h.now, maps.Collect(h.m.All()))
		step := 1 + len(x.keys)/100 // All has seen every key already
		for i := x.serial % step; i < len(x.keys); i += step {
			k := x.keys[i]
			s, tm, ok, err := h.m.Lookup(k)
			require.NoError(t, err)
			e, has := h.now[k]
			require.Equal(t, has, ok, "key %v", k)
			require.Equal(t, e, Entry[S]{s, tm}, "key %v", k)
		}
		x.checkDelta(t, h)
	}
}

func (x *model[K, S]) checkDelta(t *rapid.T, h *modelHandle[K, S]) {
	seq, err := h.m.Delta()
	if err != nil {
		require.ErrorIs(t, err, ErrDeltaGone)
		require.True(t, h.m.Sealed(), "an open version has its delta")
		return
	}
	got := []DeltaEntry[K, S]{}
	var inserted []K
	for e := range seq {
		if e.Removed {
			e.Time = 0
		} else if _, ok := h.before[e.Key]; !ok {
			inserted = append(inserted, e.Key)
		}
		got = append(got, e)
	}
	require.Equal(t, h.delta(), got)
	require.GreaterOrEqual(t, max(h.m.DeltaLen(), 0), len(got))
	var slots []K
	h.m.Inserted(func(n uint32, _ int64) bool {
		k, _, _, _ := h.m.SlotAt(n)
		slots = append(slots, k)
		return true
	})
	require.Equal(t, inserted, slots)
}
