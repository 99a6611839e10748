package storetest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/vfs"
)

type entry = statemap.Entry[int64]

// list names the files whose name has a part.
func list(t TB, m Medium, part string) (names []string) {
	t.Helper()
	objects, err := m.Files().List(context.Background(), "")
	require.NoError(t, err)
	for _, o := range objects {
		if strings.Contains(o.Name, part) {
			names = append(names, o.Name)
		}
	}
	return names
}

func replace(t TB, m Medium, name string, b []byte) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, m.Files().Delete(ctx, name))
	require.NoError(t, m.Files().PutIfAbsent(ctx, name, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}))
}

// A commit that fails is an error with its cause, nothing is left half done, and
// the next attempt works.
func failingCommits(t TB, m Medium) {
	for _, kinds := range []vfs.Kind{vfs.KindLink | vfs.KindPut, vfs.KindCreate | vfs.KindPut, vfs.KindWrite, vfs.KindSync | vfs.KindPut} {
		var f vfs.Faults
		k := open(t, m, Options{Faults: &f})
		base := k.Newest()
		h := k.handle(base)
		k.put(h, key("a"), int64(base)+1)
		f.Fail(vfs.Rule{Kinds: kinds, Forever: true})
		_, err := h.Commit(context.Background())
		require.ErrorIs(t, err, vfs.ErrInjected)
		require.Positive(t, f.Hits())
		require.ErrorContains(t, err, "cannot commit version")
		require.False(t, h.HasCommitted())
		require.ErrorIs(t, h.Put(key("b"), 1, 1), store.ErrDone)
		require.NoError(t, h.Abort())
		h.Close()
		require.Equal(t, base, k.Newest())
		f.Clear()
		k.next(func(h store.Handle[Key, int64]) { k.put(h, key("a"), int64(base)+1) })
		require.Equal(t, of("a", int(base)+1), k.at(base+1))
		require.NoError(t, k.Close())
	}
}

// Nothing is written before Commit, and one file with each.
func files(t TB, m Medium) {
	k := open(t, m, Options{})
	count := func() int { return len(list(t, m, ".delta")) }
	h := k.handle(0)
	k.put(h, key("a"), 1)
	require.Zero(t, count())
	k.commit(h)
	require.Equal(t, 1, count())
	h = k.handle(1)
	require.NoError(t, h.Remove(key("a")))
	require.Equal(t, 1, count())
	k.commit(h)
	require.Equal(t, 2, count())
	k.next(func(store.Handle[Key, int64]) {})
	require.Equal(t, 3, count(), "a commit without a change writes a delta too")
	left, err := m.Files().Leftovers(context.Background(), "")
	require.NoError(t, err)
	require.Empty(t, left)
}

func cache(t TB, m Medium) {
	k := open(t, m, Options{Cache: 2})
	for n := range 4 {
		k.next(func(h store.Handle[Key, int64]) { k.put(h, key("a"), int64(n)+1) })
	}
	hits := func(version uint64) (hit bool) {
		r, err := k.ReadStore(context.Background(), version)
		require.NoError(t, err)
		defer r.Close()
		before := r.Metrics()
		r2, err := k.ReadStore(context.Background(), version)
		require.NoError(t, err)
		defer r2.Close()
		k.get(r2, key("a"), int64(version))
		return r2.Metrics().CacheHits > before.CacheHits
	}
	require.True(t, hits(4))
	require.True(t, hits(3))
	require.False(t, hits(2))
	require.False(t, hits(1), "an older one than all that are there is not put into a full cache")
	require.True(t, hits(3))
	k = k.again(Options{Cache: -1})
	require.False(t, hits(4))
	k.next(func(h store.Handle[Key, int64]) { k.put(h, key("a"), 5) })
	require.False(t, hits(5))
	k = k.again(Options{Cache: 1})
	k.next(func(h store.Handle[Key, int64]) { k.put(h, key("a"), 6) })
	require.True(t, hits(6))
	require.False(t, hits(5))
}

func snapshots(t TB, m Medium) {
	ctx := context.Background()
	k := open(t, m, Options{Every: 5})
	step := func() {
		k.next(func(h store.Handle[Key, int64]) {
			k.put(h, key("a"), int64(k.Newest())+1)
			k.put(h, Key{"k", int64(k.Newest() % 3)}, 1)
		})
	}
	for range 2 {
		step()
		require.NoError(t, k.Maintain(ctx))
	}
	require.Empty(t, list(t, m, ".snapshot"))
	require.Len(t, list(t, m, ".delta"), 2)
	for range 18 {
		step()
		require.NoError(t, k.Maintain(ctx))
	}
	require.NotEmpty(t, list(t, m, ".snapshot"))
	require.EqualValues(t, 20, k.Newest())
	require.EqualValues(t, 20, k.atMetrics(20).LastSnapshot)
	for range 2 {
		require.Len(t, k.at(20), 4)
		require.EqualValues(t, 20, k.at(20)[key("a")].State)
		require.EqualValues(t, 19, k.at(19)[key("a")].State)
		k = k.again(Options{Every: 5})
	}
	for range 5 {
		step()
		require.NoError(t, k.Maintain(ctx))
	}
	_, err := k.Store(ctx, 1)
	require.Error(t, err, "it is cleaned up")
	deltas := list(t, m, ".delta")
	require.Less(t, len(deltas), 20)
	// Without the snapshots' deltas the newest version is still there.
	require.EqualValues(t, 25, k.again(Options{}).at(25)[key("a")].State)
}

func (k *kit) atMetrics(version uint64) store.Metrics {
	k.t.Helper()
	r, err := k.ReadStore(context.Background(), version)
	require.NoError(k.t, err)
	defer r.Close()
	return r.Metrics()
}

// Every file cut, emptied, deleted or with a byte flipped: right content or an
// error. (Spark fails on a bad snapshot; here the older one and the deltas do.)
func corruption(t TB, m Medium) {
	ctx := context.Background()
	k := open(t, m, Options{Every: 3})
	want := content{}
	for n := range 7 {
		k.next(func(h store.Handle[Key, int64]) {
			k.put(h, Key{"k", int64(n % 4)}, int64(n))
			want = read(h)
		})
		require.NoError(t, k.Maintain(ctx))
	}
	require.NoError(t, k.Close())
	bad := 0
	for _, name := range append(list(t, m, ".delta"), list(t, m, ".snapshot")...) {
		whole, err := m.Files().Get(ctx, name)
		require.NoError(t, err)
		try := func(what string) {
			s, err := m.Open(Options{})
			require.NoError(t, err, what)
			defer s.Close()
			r, err := s.ReadStore(ctx, s.Newest())
			if err != nil {
				require.ErrorIs(t, err, store.ErrNotLoadable)
				bad++
				return
			}
			defer r.Close()
			require.Equal(t, want, read(r), what)
		}
		flipped := bytes.Clone(whole)
		flipped[len(whole)/2] ^= 4
		for what, b := range map[string][]byte{"empty": nil, "cut": whole[:len(whole)-1], "flipped": flipped} {
			replace(t, m, name, b)
			try(name + " " + what)
		}
		require.NoError(t, m.Files().Delete(ctx, name))
		try(name + " deleted")
		replace(t, m, name, whole)
	}
	require.Positive(t, bad, "a delta that is needed was damaged")
}

func metrics(t TB, m Medium) {
	k := open(t, m, Options{})
	h := k.handle(0)
	zero := h.Metrics()
	require.Zero(t, zero.CacheHits+zero.CacheMisses+zero.Keys)
	require.EqualValues(t, -1, zero.LastSnapshot)
	for i := range 1000 {
		k.put(h, Key{"some name", int64(i)}, 1)
	}
	require.Greater(t, h.Metrics().VersionBytes, zero.VersionBytes)
	k.commit(h)
	got := k.atMetrics(1)
	require.EqualValues(t, 1000, got.Keys)
	require.Greater(t, got.MemoryBytes, zero.MemoryBytes)
	require.EqualValues(t, 1, got.CacheHits)
	require.Zero(t, got.CacheMisses)
	k.next(func(h store.Handle[Key, int64]) {})
	k = k.again(Options{})
	require.EqualValues(t, 1, k.atMetrics(1).CacheMisses)
	require.EqualValues(t, 2, k.atMetrics(2).CacheMisses)

	a := store.Metrics{Keys: 1, VersionBytes: 5, MemoryBytes: 10, CacheHits: 1, CacheMisses: 2, SnapshotsRepaired: 3, SnapshotsForced: 4, LastSnapshot: 7}
	b := store.Metrics{Keys: 3, VersionBytes: 6, MemoryBytes: 20, CacheHits: 10, CacheMisses: 20, SnapshotsRepaired: 30, SnapshotsForced: 40, LastSnapshot: -1}
	require.Equal(t, store.Metrics{Keys: 4, VersionBytes: 11, MemoryBytes: 30, CacheHits: 11, CacheMisses: 22, SnapshotsRepaired: 33, SnapshotsForced: 44, LastSnapshot: -1}, a.Add(b))
}

func closeAndOpen(t TB, m Medium) {
	ctx := context.Background()
	k := open(t, m, Options{Every: 2})
	for n := range 6 {
		k.next(func(h store.Handle[Key, int64]) { k.put(h, key("a"), int64(n)) })
	}
	open := k.handle(6)
	k.put(open, key("b"), 1)
	require.NoError(t, k.Close())
	require.NoError(t, k.Close())
	_, err := k.Store(ctx, 6)
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = open.Commit(ctx)
	require.ErrorIs(t, err, store.ErrClosed)
	require.ErrorIs(t, k.Maintain(ctx), store.ErrClosed)
	open.Close()
	k = k.again(Options{Every: 2})
	require.Equal(t, of("a", 5), k.at(6))
	require.Empty(t, k.at(0))
	// Maintenance whose calls fail harms nothing.
	var f vfs.Faults
	k = k.again(Options{Every: 2, Faults: &f})
	require.Len(t, k.at(6), 1)
	f.Fail(vfs.Rule{Kinds: vfs.KindWrites, Forever: true})
	require.NoError(t, k.Maintain(ctx))
	f.Clear()
	k.next(func(h store.Handle[Key, int64]) { k.put(h, key("a"), 7) })
	require.Equal(t, of("a", 7), k.again(Options{}).at(7))
}

// The process dies at the k-th call to the files, for every k.
func crashes(t TB, m Medium) {
	ctx := context.Background()
	script := func(s Stores, want map[uint64]content) error {
		for n := s.Newest() + 1; n <= 7; n = s.Newest() + 1 {
			h, err := s.Store(ctx, n-1)
			if err != nil {
				return err
			}
			_ = h.Put(Key{"k", int64(n % 3)}, int64(n), int64(n))
			if n%3 == 0 {
				_ = h.Remove(Key{"k", int64(n+1) % 3})
			}
			want[n] = read(h)
			_, err = h.Commit(ctx)
			h.Close()
			if err != nil {
				return err
			}
			if err := s.Maintain(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	step := 1
	if testing.Short() {
		step = 5
	}
	for k := 1; ; k += step {
		var f vfs.Faults
		f.Fail(vfs.Rule{K: k, Dead: true})
		from := m.Crash(0, 100) // a copy of the empty medium
		want := map[uint64]content{0: {}}
		var done uint64
		s, err := from.Open(Options{Every: 2, Faults: &f})
		if err == nil {
			err = script(s, want)
			done = s.Newest()
			_ = s.Close()
		}
		if f.Hits() == 0 {
			require.NoError(t, err)
			break
		}
		after := from.Crash(uint64(k), 50)
		again, err := after.Open(Options{Every: 2})
		require.NoError(t, err, "call %d", k)
		require.GreaterOrEqual(t, again.Newest(), done, "call %d: a committed version is gone", k)
		require.LessOrEqual(t, again.Newest(), done+1)
		r, err := again.ReadStore(ctx, again.Newest())
		require.NoError(t, err, "call %d", k)
		require.Equal(t, want[again.Newest()], read(r), "call %d", k)
		r.Close()
		require.NoError(t, script(again, want), "call %d", k)
		r, err = again.ReadStore(ctx, 7)
		require.NoError(t, err)
		require.Equal(t, want[7], read(r))
		r.Close()
		require.NoError(t, again.Close())
	}
}

// random does what comes, with restarts, and compares with a plain map.
func random(t TB, m Medium) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		k := open(t, m.Crash(0, 100), Options{Every: 1 + seed%4, Cache: int(seed%3) - 1})
		want := map[uint64]content{0: {}}
		for range 60 {
			switch rng.IntN(8) {
			case 0:
				k = k.again(Options{Every: 1 + seed%4, Cache: int(seed%3) - 1})
			case 1:
				require.NoError(t, k.Maintain(context.Background()))
			default:
				n := k.Newest()
				h := k.handle(n)
				next := maps.Clone(want[n])
				for range rng.IntN(6) {
					q := Key{"k", int64(rng.IntN(6))}
					switch rng.IntN(4) {
					case 0:
						require.NoError(t, h.Remove(q))
						delete(next, q)
					case 1:
						require.Equal(t, next, read(h))
					default:
						e := entry{State: rng.Int64(), Time: rng.Int64N(1e12)}
						require.NoError(t, h.Put(q, e.State, e.Time))
						next[q] = e
					}
				}
				if rng.IntN(4) == 0 {
					require.NoError(t, h.Abort())
				} else {
					k.commit(h)
					want[n+1] = next
				}
				h.Close()
			}
			n := k.Newest()
			require.Equal(t, want[n], k.at(n), "seed %d", seed)
			if n > 0 {
				require.Equal(t, want[n-1], k.at(n-1), "seed %d", seed)
			}
		}
	}
}
