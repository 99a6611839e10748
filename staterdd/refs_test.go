package staterdd

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/rdd"
)

type counter struct{ N int }

// inPlace runs f, which changes its state in place, through kept versions, aborts, attempts that
// fail half-way, reads without update and timeouts, and requires that no version ever changes.
func inPlace[S any](t *testing.T, f func(old rdd.Option[S], v int) S, read func(S) int, more ...func(Spec[string, int, S, int]) Spec[string, int, S, int]) {
	fail := false
	spec := Function(func(k string, v rdd.Option[int], s *State[S]) int {
		if v.OrElse(0) == 0 && !s.IsTimingOut() {
			s.Exists() // a touch that does not look at the value
			return 0
		}
		state := f(s.Option(), v.OrElse(1000))
		if fail && k == "z" {
			panic("half-way")
		}
		if v.IsSome() && v.OrElse(0) != 7 { // 7: changed in place, but not updated
			s.Update(state)
		}
		return read(state)
	}).NumPartitions(1).Timeout(3)
	for _, m := range more {
		spec = m(spec)
	}
	d := start(t, spec, Options{BlockSize: 2}, 0)
	type version struct {
		rdd  *MapWithStateRDD[string, S, int]
		want map[string]int
	}
	var kept []version
	look := func(r *MapWithStateRDD[string, S, int]) map[string]int {
		out := map[string]int{}
		for k, s := range snapshotOf(t, r) {
			out[k] = read(s)
		}
		return out
	}
	sum := map[string]int{}
	check := func() {
		require.Equal(t, sum, look(d.cur))
		for _, v := range kept {
			require.Equal(t, v.want, look(v.rdd))
		}
		require.NoError(t, d.cur.Retain())
		kept = append(kept, version{d.cur, maps.Clone(sum)})
	}
	d.batch(1, kv("a", 1), kv("b", 2), kv("a", 3), kv("z", 1))
	sum = map[string]int{"a": 4, "b": 2, "z": 1}
	check()
	// A touch in an earlier block must not make the value this version's own.
	d.batch(2, kv("a", 0), kv("b", 0), kv("a", 10), kv("b", 0), kv("b", 20), kv("z", 7))
	sum = map[string]int{"a": 14, "b": 22, "z": 1}
	check()
	for range 3 { // attempts that fail after changes, aborted with all they did
		fail = true
		next, err := d.next(3, kv("a", 5), kv("b", 6), kv("a", 7), kv("z", 1))
		require.Error(t, err)
		require.NoError(t, next.Abort())
		fail = false
		next, err = d.next(3, kv("a", 5), kv("z", 1))
		require.NoError(t, err)
		require.NoError(t, next.Seal())
		require.NoError(t, next.Abort())
	}
	check()
	d.batch(3, kv("a", 5), kv("z", 0))
	sum["a"] += 5
	check()
	require.Equal(t, []int{1022}, d.batch(6)) // b's final call changes its value in place
	delete(sum, "b")
	check()
	for _, v := range kept {
		v.rdd.Release()
	}
}

func addToMap(old rdd.Option[map[string]int], v int) map[string]int {
	m, ok := old.Get()
	if !ok {
		m = map[string]int{}
	}
	m["n"] += v
	return m
}

func readMap(m map[string]int) int { return m["n"] }

func TestMapsChangedInPlace(t *testing.T) { inPlace(t, addToMap, readMap) }

func TestPointersChangedInPlace(t *testing.T) {
	inPlace(t, func(old rdd.Option[*counter], v int) *counter {
		p := old.OrElse(&counter{})
		p.N += v
		return p
	}, func(p *counter) int { return p.N })
}

func TestCloneFunction(t *testing.T) {
	n := 0
	inPlace(t, addToMap, readMap, func(s Spec[string, int, map[string]int, int]) Spec[string, int, map[string]int, int] {
		return s.Clone(func(m map[string]int) map[string]int { n++; return maps.Clone(m) })
	})
	require.Positive(t, n)
}

// Copies are made on first touch only, and only if the function looks at the value; none for
// Immutable or a state without references.
func TestCopiesAreLazy(t *testing.T) {
	n := 0
	spec := Function(func(k string, v rdd.Option[int], s *State[[]int]) int {
		switch v.OrElse(0) {
		case 1:
			s.Update([]int{1})
		case 2:
			s.Update(append(s.Get(), s.OrElse(nil)...))
		}
		return 0
	}).NumPartitions(1)
	count := func(s []int) []int { n++; return append([]int(nil), s...) }
	f := start(t, spec.Clone(count), Options{BlockSize: 1}, 0)
	f.batch(1, kv("a", 1), kv("a", 0), kv("a", 2), kv("a", 2))
	require.Zero(t, n, "the state is the batch's own")
	f.batch(2, kv("a", 0), kv("a", 1))
	require.Zero(t, n, "nobody looked")
	f.batch(3, kv("a", 2), kv("a", 2))
	require.Equal(t, 1, n, "once a batch")
	g := start(t, spec.Immutable(), Options{}, 0)
	require.Nil(t, g.op.clone)
	require.Nil(t, start(t, countSpec(), Options{}, 0).op.clone)
}

// A state that cannot be encoded cannot be copied: the record fails.
func TestCopyFails(t *testing.T) {
	type node struct{ Next *node }
	spec := Function(func(k string, v rdd.Option[int], s *State[*node]) int {
		if !s.Exists() {
			n := &node{}
			n.Next = n
			s.Update(n)
			return 0
		}
		if _, err := s.TryGet(); err == nil {
			return 1
		}
		s.Lookup()
		return 2
	})
	if len(spec.Validate()) > 0 {
		t.Skip("the codec refuses recursive types at once")
	}
	f := start(t, spec, Options{}, 0)
	f.batch(1, kv("a", 1))
	_, err := f.next(2, kv("a", 1))
	require.Error(t, err)
	var re *rdd.RecordError
	require.ErrorAs(t, err, &re)
	require.Equal(t, "a", re.Key)
}
