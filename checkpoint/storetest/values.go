package storetest

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/statemap"
)

// closed reads what is closed, aborted, or was not committed; that the version is in
// memory for others makes no difference. Close aborts what is open.
func closed(t TB, m Medium) { // R5
	k := open(t, m, Options{})
	k.next(func(h store.Handle[Key, int64]) { k.put(h, key("a"), 1) })
	none := func(r store.Reader[Key, int64], what string) {
		_, ok, err := r.Get(key("a"))
		require.ErrorIs(t, err, statemap.ErrReleased, what)
		require.False(t, ok, what)
		require.Empty(t, read(r), what)
		for range r.Prefix(prefix(t, "a")) {
			require.Fail(t, "a key", what)
		}
	}
	r, err := k.ReadStore(context.Background(), 1)
	require.NoError(t, err)
	late := r.Iterate()
	r.Close()
	none(r, "reader")
	for range late {
		require.Fail(t, "an iteration that begins after Close")
	}

	h := k.handle(1)
	k.put(h, key("a"), 2)
	h.Close()
	none(h, "handle that was open")
	require.ErrorIs(t, h.Put(key("b"), 1, 1), store.ErrDone, "Close aborts")
	_, err = h.Commit(context.Background())
	require.ErrorIs(t, err, store.ErrDone, "Close aborts")
	require.False(t, h.HasCommitted())
	require.EqualValues(t, 1, k.Newest())
	require.Equal(t, of("a", 1), k.at(1))

	h = k.handle(1)
	k.put(h, key("a"), 2)
	require.NoError(t, h.Abort())
	none(h, "handle that was aborted")
	h.Close()
	none(h, "and closed")

	h = k.handle(1)
	k.put(h, key("a"), 2)
	_, err = h.Commit(context.Background())
	require.NoError(t, err)
	k.get(h, key("a"), 2)
	h.Close()
	none(h, "handle that was committed")
	h.Close()
	require.True(t, h.HasCommitted())
	require.Equal(t, of("a", 2), k.at(2))
}

// everyKind puts keys and states from the ends of what there is: what is put is what
// is read, from memory, from deltas and from snapshots.
func everyKind(t TB, m Medium) {
	ctx := context.Background()
	names := []string{"", "a", "aa", "\x00", "a\x00b", "\xff\xfe", "ключ", strings.Repeat("long", 5000)}
	numbers := []int64{0, 1, -1, 5, -5, 255, 256, 999, 1000, 1001, 1 << 31, -1 << 31, math.MaxInt64, math.MinInt64}
	times := []int64{0, 1, -1, 1e18, -1e18}
	k := open(t, m, Options{Every: 1})
	want := content{}
	h := k.handle(0)
	for i, name := range names {
		for j, n := range numbers {
			e := entry{State: numbers[(i+j)%len(numbers)], Time: times[(i+2*j)%len(times)]}
			require.NoError(t, h.Put(Key{name, n}, e.State, e.Time))
			want[Key{name, n}] = e
		}
	}
	check := func(r store.Reader[Key, int64]) {
		require.Equal(t, want, read(r))
		for q, e := range want {
			got, ok, err := r.Get(q)
			require.NoError(t, err)
			require.True(t, ok, "%v", q)
			require.Equal(t, e, got, "%v", q)
		}
	}
	check(h)
	k.commit(h)
	for round := range 3 {
		if round == 1 {
			require.NoError(t, k.Maintain(ctx))
		}
		k = k.again(Options{Every: 1, Cache: -1})
		r, err := k.ReadStore(ctx, k.Newest())
		require.NoError(t, err)
		check(r)
		r.Close()
	}
	// Each is a key of its own.
	k.next(func(h store.Handle[Key, int64]) {
		for i, name := range names {
			q := Key{name, numbers[i]}
			require.NoError(t, h.Remove(q))
			delete(want, q)
		}
		check(h)
	})
	k = k.again(Options{})
	require.Equal(t, want, k.at(2))
}

// repairsCounted damages all snapshots, one after another: a load that had to do
// without one says so, and no other does.
func repairsCounted(t TB, m Medium) {
	ctx := context.Background()
	k := open(t, m, Options{Every: 3})
	for n := range 7 {
		k.next(func(h store.Handle[Key, int64]) { k.put(h, key("a"), int64(n)) })
		require.NoError(t, k.Maintain(ctx))
	}
	require.NoError(t, k.Close())
	repaired := func() int64 {
		s, err := m.Open(Options{})
		require.NoError(t, err)
		defer s.Close()
		r, err := s.ReadStore(ctx, s.Newest())
		require.NoError(t, err)
		defer r.Close()
		require.Equal(t, of("a", 6), read(r))
		return r.Metrics().SnapshotsRepaired
	}
	require.Zero(t, repaired())
	var counts []int64
	for _, name := range list(t, m, ".snapshot") {
		whole, err := m.Files().Get(ctx, name)
		require.NoError(t, err)
		replace(t, m, name, whole[:len(whole)-1])
		counts = append(counts, repaired())
		replace(t, m, name, whole)
	}
	require.Contains(t, counts, int64(1), "the newest of %d", len(counts))
	require.Zero(t, repaired())
	slices.Sort(counts)
	require.LessOrEqual(t, counts[len(counts)-1], int64(1))
}
