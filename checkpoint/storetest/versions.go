package storetest

import (
	"context"
	"io/fs"
	"math"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/store"
)

func versions(t TB, m Medium) {
	k := open(t, m, Options{})
	h := k.handle(0)
	require.Zero(t, h.Version())
	k.none(h, key("a"))
	require.Empty(t, read(h))
	require.Zero(t, h.Metrics().Keys)
	require.False(t, h.HasCommitted())
	k.put(h, key("a"), 1)
	k.get(h, key("a"), 1)
	require.Empty(t, k.at(0), "others see nothing")
	k.put(h, key("b"), 2)
	k.put(h, key("aa"), 3)
	for q := range h.Iterate() {
		if q.Name[0] == 'a' {
			require.NoError(t, h.Remove(q))
		}
	}
	require.Equal(t, of("b", 2), read(h))
	n, err := h.Commit(context.Background())
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	require.True(t, h.HasCommitted())
	require.Equal(t, of("b", 2), read(h))
	h.Close()
	require.Equal(t, of("b", 2), k.at(1))
	_, err = k.Store(context.Background(), 2)
	require.ErrorContains(t, err, "does not exist")
	require.ErrorIs(t, err, fs.ErrNotExist)

	k = k.again(Options{})
	require.EqualValues(t, 1, k.Newest())
	require.Equal(t, of("b", 2), k.at(1))
	h = k.handle(1)
	k.put(h, key("c"), 4)
	require.EqualValues(t, 2, k.commit(h))
	require.Equal(t, of("b", 2, "c", 4), k.at(2))
	require.Equal(t, of("b", 2), k.at(1))
	require.Empty(t, k.at(0))
}

func unknownVersions(t TB, m Medium) {
	k := open(t, m, Options{})
	ctx := context.Background()
	minus := uint64(math.MaxUint64)
	for _, version := range []uint64{minus, 1, 2} {
		_, err := k.Store(ctx, version)
		var e *store.VersionError
		require.ErrorAs(t, err, &e)
		require.Equal(t, version, e.Version)
		_, err = k.ReadStore(ctx, version)
		require.ErrorAs(t, err, &e)
	}
	_, err := k.Store(ctx, minus)
	require.ErrorContains(t, err, "unexpected version -1")
	require.NotErrorIs(t, err, fs.ErrNotExist)
	for n := uint64(1); n <= 2; n++ {
		k.next(func(h store.Handle[Key, int64]) { k.put(h, key("a"), int64(n)) })
		_, err := k.Store(ctx, n+1)
		require.ErrorContains(t, err, "does not exist")
	}
}

func changeWhileIterating(t TB, m Medium) {
	k := open(t, m, Options{})
	k.next(func(h store.Handle[Key, int64]) {
		k.put(h, key("a"), 1)
		k.put(h, key("b"), 2)
	})
	h := k.handle(1)
	for q, e := range h.Iterate() {
		if q.Name == "a" {
			k.put(h, q, e.State+1)
		} else {
			require.NoError(t, h.Remove(q))
		}
	}
	k.commit(h)
	require.Equal(t, of("a", 2), k.at(2))
	require.Equal(t, of("a", 2), k.again(Options{}).at(2))
}

func abortAndKeys(t TB, m Medium) {
	k := open(t, m, Options{})
	k.next(func(h store.Handle[Key, int64]) {
		for i := range 5 {
			k.put(h, Key{"k", int64(i)}, 7)
		}
		require.EqualValues(t, 5, h.Metrics().Keys)
	})
	for _, iterate := range []bool{false, true} {
		h := k.handle(1)
		k.put(h, key("x"), 1)
		if iterate {
			for range h.Iterate() {
				k.put(h, key("y"), 1)
				require.NoError(t, h.Remove(Key{"k", 1}))
				break
			}
		}
		require.NoError(t, h.Remove(Key{"k", 0}))
		require.NoError(t, h.Abort())
		require.NoError(t, h.Abort())
		require.Len(t, k.at(1), 5)
	}
	k = k.again(Options{})
	k.next(func(h store.Handle[Key, int64]) {
		require.NoError(t, h.Remove(Key{"k", 3}))
		require.EqualValues(t, 4, h.Metrics().Keys)
	})
	require.Len(t, k.at(2), 4)
	require.Len(t, k.at(1), 5)
}

func readerBesideWriter(t TB, m Medium) {
	k := open(t, m, Options{})
	k.next(func(h store.Handle[Key, int64]) { k.put(h, key("a"), 1) })
	r, err := k.ReadStore(context.Background(), 1)
	require.NoError(t, err)
	h := k.handle(1)
	k.put(h, key("a"), 2)
	k.get(r, key("a"), 1)
	k.commit(h)
	k.get(r, key("a"), 1)
	r.Close()
	r.Close()
	require.Equal(t, of("a", 2), k.at(2))
}

// A version that exists is not made again, whatever its handle holds: Spark
// overwrites it.
func madeOnce(t TB, m Medium) {
	k := open(t, m, Options{})
	ctx := context.Background()
	first, second := k.handle(0), k.handle(0)
	k.put(first, key("a"), 1)
	k.put(second, key("a"), 2)
	k.commit(first)
	_, err := second.Commit(ctx)
	require.ErrorIs(t, err, store.ErrExists)
	var e *store.CommitError
	require.ErrorAs(t, err, &e)
	require.EqualValues(t, 1, e.Version)
	require.False(t, second.HasCommitted())
	require.ErrorIs(t, second.Put(key("a"), 3, 3), store.ErrDone)
	second.Close()
	require.Equal(t, of("a", 1), k.at(1))
	left, err := m.Files().Leftovers(ctx, "")
	require.NoError(t, err)
	require.Empty(t, left)

	// An older handle does not disturb those that follow it.
	old := k.handle(0)
	k.next(func(h store.Handle[Key, int64]) { k.put(h, key("b"), 2) })
	k.put(old, key("z"), 9)
	_, err = old.Commit(ctx)
	require.ErrorIs(t, err, store.ErrExists)
	require.Equal(t, of("a", 1, "b", 2), k.at(2))
	k.next(func(h store.Handle[Key, int64]) { k.put(h, key("c"), 3) })
	require.Equal(t, of("a", 1, "b", 2, "c", 3), k.again(Options{}).at(3))
}

func legality(t TB, m Medium) {
	k := open(t, m, Options{})
	ctx := context.Background()
	h := k.handle(0)
	k.put(h, key("a"), 1)
	k.commit(h)
	require.ErrorIs(t, h.Put(key("b"), 1, 1), store.ErrDone)
	require.ErrorIs(t, h.Remove(key("a")), store.ErrDone)
	_, err := h.Commit(ctx)
	require.ErrorIs(t, err, store.ErrDone)
	require.NoError(t, h.Abort())
	require.True(t, h.HasCommitted(), "abort after commit has no effect")
	require.Equal(t, of("a", 1), k.at(1))

	h = k.handle(1)
	require.NoError(t, h.Abort())
	require.ErrorIs(t, h.Put(key("b"), 1, 1), store.ErrDone)
	_, err = h.Commit(ctx)
	require.ErrorIs(t, err, store.ErrDone)
	require.False(t, h.HasCommitted())
	require.EqualValues(t, 1, k.Newest())

	// A version without a change is one.
	require.EqualValues(t, 2, k.next(func(store.Handle[Key, int64]) {}))
	require.Equal(t, of("a", 1), k.again(Options{}).at(2))
}

func tombstonesAndTimes(t TB, m Medium) {
	k := open(t, m, Options{Every: 3})
	k.next(func(h store.Handle[Key, int64]) {
		require.NoError(t, h.Put(key("a"), 1, 100))
		require.NoError(t, h.Put(key("b"), 2, -7))
		require.NoError(t, h.Put(key("gone"), 3, 5))
	})
	k.next(func(h store.Handle[Key, int64]) {
		require.NoError(t, h.Remove(key("gone")))
		require.NoError(t, h.Remove(key("never")))
		require.NoError(t, h.Put(key("came and went"), 1, 1))
		require.NoError(t, h.Remove(key("came and went")))
	})
	k.next(func(h store.Handle[Key, int64]) { require.NoError(t, h.Put(key("a"), 1, 200)) })
	require.NoError(t, k.Maintain(context.Background()))
	k.next(func(h store.Handle[Key, int64]) { require.NoError(t, h.Put(key("gone"), 4, 300)) })
	for range 2 {
		for version, want := range map[uint64]map[string][2]int64{
			1: {"a": {1, 100}, "b": {2, -7}, "gone": {3, 5}},
			2: {"a": {1, 100}, "b": {2, -7}},
			3: {"a": {1, 200}, "b": {2, -7}},
			4: {"a": {1, 200}, "b": {2, -7}, "gone": {4, 300}},
		} {
			got := map[string][2]int64{}
			for q, e := range k.at(version) {
				got[q.Name] = [2]int64{e.State, e.Time}
			}
			require.Equal(t, want, got, "version %d", version)
		}
		k = k.again(Options{Cache: -1})
	}
}
