package batchfiles_test

import (
	"context"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/batchfiles"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
)

type bgctx = context.Context

func put(t testing.TB, store vfs.Store, name, data string) {
	t.Helper()
	require.NoError(t, store.PutIfAbsent(bg, name, func(w io.Writer) error {
		_, err := io.WriteString(w, data)
		return err
	}))
}

// with gives a store with one object changed.
func with(t testing.TB, all map[string]string, name string, data *string) vfs.Store {
	s := vfs.NewObjects()
	for n, b := range all {
		switch {
		case n != name:
			put(t, s, n, b)
		case data != nil:
			put(t, s, n, *data)
		}
	}
	return s
}

func readRecords(store vfs.Store) error {
	r, err := batchfiles.Records[string](bg, store, "d", nil)
	if err == nil {
		_, err = rdd.Collect(bg, r)
	}
	return err
}

// Every changed, missing or added byte of a batch is found, and the error names the file.
func TestDamage(t *testing.T) {
	store := vfs.NewObjects()
	require.NoError(t, batchfiles.SaveRecords(bg, store, "d", rdd.Parallelize([]string{"a", "", "bcd"}, 2), nil))
	all := objects(t, store)
	require.Len(t, all, 4)
	for name, b := range all {
		if name == "d/_PARTS" { // not read
			continue
		}
		check := func(data *string, what string) {
			t.Helper()
			err := readRecords(with(t, all, name, data))
			require.ErrorIs(t, err, batchfiles.ErrDamaged, "%s: %s", name, what)
			require.ErrorContains(t, err, name)
			var d *batchfiles.DamagedError
			require.ErrorAs(t, err, &d)
			require.True(t, d.Permanent())
		}
		for i := range b {
			for _, bit := range []byte{1, 0x80} {
				bad := []byte(b)
				bad[i] ^= bit
				text := string(bad)
				check(&text, "a bit is flipped")
			}
			short := b[:i]
			check(&short, "it is cut")
		}
		long := b + "\x00"
		check(&long, "a byte is added")
		if !strings.HasSuffix(name, "_SUCCESS") {
			check(nil, "it is missing")
		}
	}
	newer := batchfiles.Newer(all["d/_SUCCESS"])
	err := readRecords(with(t, all, "d/_SUCCESS", &newer))
	require.ErrorIs(t, err, batchfiles.ErrFormat)
	require.ErrorContains(t, err, "format 2, this version reads up to 1")
}

// A save over damaged descriptions is an error too.
func TestDamageBelowASave(t *testing.T) {
	for _, name := range []string{"/_PARTS", "/_SUCCESS"} {
		store := vfs.NewObjects()
		put(t, store, folder+name, "x")
		err := saveText(store, rows(1, 1))
		require.ErrorIs(t, err, batchfiles.ErrDamaged)
		require.ErrorContains(t, err, folder+name)
	}
}

// A store that fails to read is told as that, with the path.
func TestReadFaults(t *testing.T) {
	under := vfs.NewObjects()
	require.NoError(t, batchfiles.SaveRecords(bg, under, "d", rdd.Parallelize([]string{"a"}, 1), nil))
	for _, name := range []string{"d/_SUCCESS", "d/part-00000"} {
		var f vfs.Faults
		f.Fail(vfs.Rule{Path: name})
		err := readRecords(vfs.WithStoreFaults(under, &f))
		var file *batchfiles.FileError
		require.ErrorAs(t, err, &file)
		require.Equal(t, name, file.Path)
		require.False(t, file.Permanent())
	}
	var f vfs.Faults
	f.Fail(vfs.Rule{Kinds: vfs.KindList})
	_, err := batchfiles.List(bg, vfs.WithStoreFaults(under, &f), "d", "")
	require.ErrorIs(t, err, vfs.ErrInjected)
}

// A cancelled read ends with the context's error.
func TestCancelled(t *testing.T) {
	store := vfs.NewObjects()
	require.NoError(t, saveText(store, rows(600, 1)))
	r, err := batchfiles.Lines(bg, store, folder)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(bg)
	err = rdd.ForeachPartition(ctx, r, func(_ context.Context, _ int, in iter.Seq[string]) error {
		for range in {
			cancel()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
}
