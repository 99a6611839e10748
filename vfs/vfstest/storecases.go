package vfstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

func putAndGet(t TB, s Stores) {
	ctx := context.Background()
	for _, name := range []string{"one", "commits/7", "state/counts/0/7.1.delta"} {
		putText(t, s.A, name, "content of "+name)
		require.Equal(t, "content of "+name, getText(t, s.B, name))
		o, err := s.B.Stat(ctx, name)
		require.NoError(t, err)
		require.Equal(t, vfs.Object{Name: name, Size: int64(len("content of " + name))}, o)
	}
	require.NoError(t, s.A.PutIfAbsent(ctx, "empty", func(io.Writer) error { return nil }))
	require.Empty(t, getText(t, s.B, "empty"))
	b, err := s.A.Get(ctx, "one")
	require.NoError(t, err)
	b[0] = 'X'
	require.Equal(t, "content of one", getText(t, s.A, "one"), "the bytes belong to the caller")
}

// Report 14: what is there stays.
func putExclusive(t TB, s Stores) {
	putText(t, s.A, "commits/7", "first")
	for _, writer := range []vfs.Store{s.A, s.B} {
		is(t, writer.PutIfAbsent(context.Background(), "commits/7", text("second")), fs.ErrExist, "7")
		require.Equal(t, "first", getText(t, s.B, "commits/7"))
	}
	require.Equal(t, []string{"commits/7"}, listNames(t, s.A, ""))
}

func putOneWinner(t TB, s Stores) {
	const many = 8
	errs := make([]error, many)
	var wg sync.WaitGroup
	for i := range many {
		writer := s.A
		if i%2 > 0 {
			writer = s.B
		}
		wg.Go(func() {
			errs[i] = writer.PutIfAbsent(context.Background(), "commits/7", text(strings.Repeat(strconv.Itoa(i), 1000)))
		})
	}
	wg.Wait()
	requireOneWinner(t, errs, func(i int) {
		require.Equal(t, strings.Repeat(strconv.Itoa(i), 1000), getText(t, s.A, "commits/7"))
	})
}

// Report 13: nothing that is not whole is ever seen.
func putWhole(t TB, s Stores) {
	ctx, errFull := context.Background(), errors.New("full")
	unseen := func() {
		for _, reader := range []vfs.Store{s.A, s.B} {
			_, err := reader.Stat(ctx, "f/a")
			require.ErrorIs(t, err, fs.ErrNotExist)
			_, err = reader.Get(ctx, "f/a")
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.Empty(t, listNames(t, reader, "f/"))
		}
	}
	err := s.A.PutIfAbsent(ctx, "f/a", func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		require.NoError(t, err)
		unseen()
		left, err := s.B.Leftovers(ctx, "f/")
		require.NoError(t, err)
		for _, l := range left {
			require.Equal(t, "f/a", l.Target)
			require.NotEmpty(t, l.Tag)
			require.True(t, strings.HasPrefix(l.Name, "f/"))
		}
		return errFull
	})
	is(t, err, errFull, "a")
	require.NotErrorIs(t, err, fs.ErrExist)
	unseen()
	left, err := s.A.Leftovers(ctx, "")
	require.NoError(t, err)
	require.Empty(t, left, "a put that failed in order leaves nothing")
	err = s.A.PutIfAbsent(ctx, "f/a", func(io.Writer) error { return fs.ErrExist })
	require.Error(t, err)
	require.NotErrorIs(t, err, fs.ErrExist, "the writer's own error does not say that the name is taken")
	unseen()
	putText(t, s.B, "f/a", "whole")
	require.Equal(t, "whole", getText(t, s.A, "f/a"))
}

func ranges(t TB, s Stores) {
	ctx := context.Background()
	putText(t, s.A, "a", "0123456789")
	p := make([]byte, 4)
	n, err := s.B.ReadAt(ctx, "a", p, 3)
	require.NoError(t, err)
	require.Equal(t, "3456", string(p[:n]))
	n, err = s.B.ReadAt(ctx, "a", p, 8)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "89", string(p[:n]))
	n, err = s.B.ReadAt(ctx, "a", p, 10)
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, n)
	_, err = s.B.ReadAt(ctx, "a", p, -1)
	is(t, err, fs.ErrInvalid, "a")

	o, err := s.B.Stat(ctx, "a")
	require.NoError(t, err)
	r := vfs.NewReader(ctx, s.B, o)
	all, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(all))
	require.EqualValues(t, 10, r.Size())
}

func absentObjects(t TB, s Stores) {
	ctx := context.Background()
	putText(t, s.A, "f/here", "x")
	for _, name := range []string{"no", "f/no", "g/no", "f"} {
		_, err := s.A.Stat(ctx, name)
		is(t, err, fs.ErrNotExist, name)
	}
	_, err := s.A.Get(ctx, "f/no")
	is(t, err, fs.ErrNotExist, "no")
	_, err = s.A.ReadAt(ctx, "g/no", make([]byte, 1), 0)
	is(t, err, fs.ErrNotExist, "no")
	require.Empty(t, listNames(t, s.A, "g/"))
	left, err := s.A.Leftovers(ctx, "g/")
	require.NoError(t, err)
	require.Empty(t, left)
}

func listObjects(t TB, s Stores) {
	for _, name := range []string{"b/2", "b/10", "a/x/1", "a-/1", "a/y", "top"} {
		putText(t, s.A, name, name)
	}
	require.Equal(t, []string{"a-/1", "a/x/1", "a/y", "b/10", "b/2", "top"}, listNames(t, s.B, ""))
	require.Equal(t, []string{"a/x/1", "a/y"}, listNames(t, s.B, "a/"))
	require.Equal(t, []string{"a/x/1"}, listNames(t, s.B, "a/x/"))
	list, err := s.B.List(context.Background(), "b/")
	require.NoError(t, err)
	require.Equal(t, []vfs.Object{{Name: "b/10", Size: 4}, {Name: "b/2", Size: 3}}, list)
}

// A list that ends with the first page of a service is one that loses commits.
func listMany(t TB, s Stores) {
	names := make([]string, manyNames)
	for i := range names {
		names[i] = fmt.Sprintf("many/%04d", i)
	}
	errs := make([]error, 16)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := w; i < len(names); i += len(errs) {
				errs[w] = errors.Join(errs[w], s.A.PutIfAbsent(context.Background(), names[i], func(io.Writer) error { return nil }))
			}
		})
	}
	wg.Wait()
	require.Empty(t, failures(errs))
	require.Equal(t, names, listNames(t, s.B, "many/"))
	require.Equal(t, names, listNames(t, s.B, ""))
}

// deleteOne deletes names that others begin with.
func deleteOne(t TB, s Stores) {
	ctx := context.Background()
	for _, name := range []string{"commits/1", "commits/10", "commits/100", "commits/1.x", "commits/2", "commits-1/1"} {
		putText(t, s.A, name, name)
	}
	require.NoError(t, s.B.Delete(ctx, "commits/1"))
	require.NoError(t, s.B.Delete(ctx, "commits"))
	require.Equal(t, []string{"commits-1/1", "commits/1.x", "commits/10", "commits/100", "commits/2"}, listNames(t, s.A, ""))
	require.NoError(t, s.A.Delete(ctx, "commits/10"))
	require.Equal(t, "commits/100", getText(t, s.B, "commits/100"))
}

func deleteObjects(t TB, s Stores) {
	ctx := context.Background()
	putText(t, s.A, "f/a", "one")
	require.NoError(t, s.B.Delete(ctx, "f/a"))
	_, err := s.A.Get(ctx, "f/a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, s.A.Delete(ctx, "f/a"), "absent is deleted")
	require.NoError(t, s.A.Delete(ctx, "f"), "a folder is no object")
	require.NoError(t, s.A.Delete(ctx, "no/a"))
	putText(t, s.A, "f/a", "two")
	require.Equal(t, "two", getText(t, s.B, "f/a"))
}

func badNames(t TB, s Stores) {
	ctx := context.Background()
	for _, name := range []string{"", ".", "/a", "a/", "a//b", "../a", "a/../b", "x.tmp.1", `a\b`} {
		require.ErrorIs(t, s.A.PutIfAbsent(ctx, name, text("x")), fs.ErrInvalid, name)
		_, err := s.A.Get(ctx, name)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
		_, err = s.A.Stat(ctx, name)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
		_, err = s.A.ReadAt(ctx, name, nil, 0)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
	}
	for _, name := range []string{"", "/a", "../a", "../a.tmp.1"} {
		require.ErrorIs(t, s.A.Delete(ctx, name), fs.ErrInvalid, name)
	}
	for _, folder := range []string{"a", "/", "../", "a//"} {
		_, err := s.A.List(ctx, folder)
		require.ErrorIs(t, err, fs.ErrInvalid, folder)
		_, err = s.A.Leftovers(ctx, folder)
		require.ErrorIs(t, err, fs.ErrInvalid, folder)
	}
	require.Empty(t, listNames(t, s.A, ""))
}

func cancelled(t TB, s Stores) {
	ctx, cancel := context.WithCancel(context.Background())
	err := s.A.PutIfAbsent(ctx, "a", func(w io.Writer) error {
		cancel()
		_, err := io.WriteString(w, "x")
		return err
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.A.PutIfAbsent(ctx, "a", text("x")), context.Canceled)
	_, err = s.A.Get(ctx, "a")
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.A.List(ctx, "")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.A.Delete(ctx, "a"), context.Canceled)
	require.Empty(t, listNames(t, s.A, ""))
}

// What was put is there after a crash, and so is what was found taken.
func putDurable(t TB, s Stores) {
	if s.Crash == nil {
		return
	}
	names := []string{"top", "a/b/c/deep", "a/b/c/deeper", "a/other"}
	for _, name := range names {
		putText(t, s.A, name, "content of "+name)
		require.ErrorIs(t, s.B.PutIfAbsent(context.Background(), name, text("x")), fs.ErrExist)
		after := s.Crash()
		require.Equal(t, "content of "+name, getText(t, after, name))
	}
	after := s.Crash()
	require.Len(t, listNames(t, after, ""), len(names))
}

func lockStore(t TB, s Stores) {
	on := func(s vfs.Store) take {
		return func(name, holder string) (io.Closer, error) { return s.Lock(context.Background(), name, holder) }
	}
	requireLock(t, "lock", on(s.A), on(s.B))
}
