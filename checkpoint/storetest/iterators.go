package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/store"
)

// The column of snapshot iterators: one sees what there was when it was made.
func iterators(t TB, m Medium) {
	k := open(t, m, Options{})
	for range 2 { // on an empty store, and on one that was loaded
		h := k.handle(k.Newest())
		before := read(h)
		first := h.Iterate()
		k.put(h, key("a"), 1)
		k.put(h, key("b"), 2)
		middle := h.Iterate()
		again := h.Iterate()
		require.NoError(t, h.Remove(key("a")))
		k.put(h, key("c"), 3)
		last := h.Iterate()
		collect := func(seq func(func(Key, entry) bool)) content {
			out := content{}
			for q, e := range seq {
				out[q] = e
			}
			return out
		}
		require.Equal(t, before, collect(first))
		require.Equal(t, of("a", 1, "b", 2), without(collect(middle), "c"))
		require.Equal(t, collect(middle), collect(again))
		require.Equal(t, collect(middle), collect(middle), "an iterator can be used again")
		require.Equal(t, of("b", 2, "c", 3), collect(last))
		k.commit(h)
		require.Equal(t, of("b", 2, "c", 3), k.at(k.Newest()))
		k = k.again(Options{})
		require.Equal(t, of("b", 2, "c", 3), k.at(k.Newest()))
	}
}

func without(c content, name string) content {
	delete(c, key(name))
	return c
}

func closeWhileIterating(t TB, m Medium) {
	k := open(t, m, Options{})
	k.next(func(h store.Handle[Key, int64]) {
		for i := range 20 {
			k.put(h, Key{"k", int64(i)}, 1)
		}
	})
	n := 0
	r, err := k.ReadStore(context.Background(), 1)
	require.NoError(t, err)
	for range r.Iterate() {
		if n++; n == 3 {
			r.Close()
			require.NoError(t, k.Close())
		}
	}
	require.Equal(t, 20, n)

	// The same with a handle that is aborted, and one that is committed.
	for _, commit := range []bool{false, true} {
		k = open(t, m, Options{})
		h := k.handle(k.Newest())
		k.put(h, Key{"k", 20}, 1)
		n = 0
		for range h.Iterate() {
			if n++; n != 3 {
				continue
			}
			if commit {
				k.commit(h)
			} else {
				require.NoError(t, h.Abort())
			}
		}
		require.Equal(t, 21, n)
		if !commit {
			require.Len(t, k.at(1), 20)
			k.next(func(h store.Handle[Key, int64]) { require.Len(t, read(h), 20) })
		}
		require.NoError(t, k.Close())
	}
}

func prefixes(t TB, m Medium) {
	k := open(t, m, Options{})
	group := func(h store.Handle[Key, int64], name string, ns ...int64) {
		for _, n := range ns {
			k.put(h, Key{name, n}, n)
		}
	}
	with := func(r store.Reader[Key, int64], name string) (n int) {
		for q, e := range r.Prefix(prefix(t, name)) {
			require.Equal(t, name, q.Name)
			require.Equal(t, q.N, e.State)
			n++
		}
		return n
	}
	k.next(func(h store.Handle[Key, int64]) {
		for _, name := range []string{"a", "b", "c", "ab"} {
			group(h, name, 1, 2, 3)
			require.Equal(t, 3, with(h, name))
		}
		require.Zero(t, with(h, "z"))
	})
	k = k.again(Options{})
	h := k.handle(1)
	require.Equal(t, 3, with(h, "a"))
	group(h, "c", 4, 5, 6)
	group(h, "d", 4, 5, 6)
	require.Equal(t, 6, with(h, "c"))
	require.Equal(t, 3, with(h, "d"))
	require.NoError(t, h.Abort())
	r, err := k.ReadStore(context.Background(), 1)
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, 3, with(r, "c"))
	require.Zero(t, with(r, "d"))
	n := 0
	for range r.Prefix(nil) {
		n++
	}
	require.Equal(t, 12, n)
}

// Readers of all versions are not disturbed by a writer, by maintenance, or by
// one another. Under the race detector this says more.
func manyReaders(t TB, m Medium) {
	k := open(t, m, Options{Every: 4})
	ctx := context.Background()
	const keys, last = 50, 20
	write := func(n uint64) {
		k.next(func(h store.Handle[Key, int64]) {
			for i := range keys {
				if i%10 == int(n%10) || n == 1 {
					k.put(h, Key{"k", int64(i)}, int64(n))
				}
			}
			k.put(h, key("version"), int64(n))
		})
	}
	write(1)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			for range 50 {
				n := k.Newest()
				r, err := k.ReadStore(ctx, n)
				if err == nil {
					err = consistent(r, n, keys)
					r.Close()
				}
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	for n := uint64(2); n <= last; n++ {
		write(n)
		require.NoError(t, k.Maintain(ctx))
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

func consistent(r store.Reader[Key, int64], n uint64, keys int) error {
	e, ok, err := r.Get(key("version"))
	if err != nil || !ok || e.State != int64(n) {
		return errors.Join(err, fmt.Errorf("version %d says that it is %d", n, e.State))
	}
	count := 0
	for q, e := range r.Iterate() {
		count++
		if e.State > int64(n) {
			return fmt.Errorf("version %d has %v of version %d", n, q, e.State)
		}
	}
	if count != keys+1 {
		return fmt.Errorf("version %d has %d keys", n, count)
	}
	return nil
}
