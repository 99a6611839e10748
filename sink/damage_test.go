package sink_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// read reads all there is, and gives the rows of the epochs before an error.
func read(t *testing.T, store vfs.Store) (rows int, err error) {
	r, err := sink.OpenFiles(t.Context(), store, "counts", "root-1")
	if err != nil {
		return 0, err
	}
	for _, err := range r.Rows(t.Context()) {
		if err != nil {
			return rows, err
		}
		rows++
	}
	return rows, nil
}

// Every byte of every file: changed, cut off, or one added. A reader says so, and
// gives no row of the file; so does a run that opens the log with it at its end.
func TestEveryByteDamaged(t *testing.T) {
	store := written(t)
	for _, name := range names(t, store) {
		if strings.HasPrefix(name, "counts/roots/") {
			continue // only the name counts
		}
		whole, err := store.Get(t.Context(), name)
		require.NoError(t, err)
		check := func(what string, b []byte) {
			bad := with(t, store, name, b)
			_, err := read(t, bad)
			require.True(t, errors.Is(err, sink.ErrDamaged) || errors.Is(err, sink.ErrFormat), "%s %s: %v", name, what, err)
			require.ErrorContains(t, err, name)
			if strings.HasSuffix(name, "manifests/5") {
				err := sink.NewFiles("counts", bad).Fence(t.Context(), fenceOf("root-1", 3))
				require.Error(t, err, what)
				require.True(t, errors.Is(err, sink.ErrDamaged) || errors.Is(err, sink.ErrFormat), "%s: %v", what, err)
				require.Equal(t, names(t, store), names(t, bad), "nothing was written")
			}
		}
		for i := range whole {
			for _, flip := range []byte{1, 0x20, 0x80} {
				b := []byte(string(whole))
				b[i] ^= flip
				check(fmt.Sprintf("byte %d flipped by %#x", i, flip), b)
			}
			check(fmt.Sprintf("cut at %d", i), whole[:i])
		}
		check("with a byte more", append([]byte(string(whole)), '\n'))
		check("twice", append([]byte(string(whole)), whole...))
	}
}

// A file that is gone, or in the place of another, is found too.
func TestFilesMissingOrMoved(t *testing.T) {
	store := written(t)
	list := names(t, store)
	for _, name := range list {
		if strings.HasPrefix(name, "counts/roots/") {
			continue
		}
		bad := store.Clone()
		require.NoError(t, bad.Delete(t.Context(), name))
		_, err := read(t, bad)
		if strings.HasSuffix(name, "manifests/5") {
			require.NoError(t, err, "the log is shorter, and nobody can know")
			continue
		}
		require.Error(t, err, name)
		if strings.Contains(name, "/manifests/") {
			require.ErrorIs(t, err, sink.ErrDamaged)
			// A run sees a hole at the beginning and before the end. One in between
			// does not concern it: the last entry says all that it must know.
			err := sink.NewFiles("counts", bad).Fence(t.Context(), fenceOf("root-1", 3))
			if strings.HasSuffix(name, "manifests/3") {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, sink.ErrDamaged, "a hole in the log")
			}
		}
		for _, other := range list {
			if other == name || strings.HasPrefix(other, "counts/roots/") {
				continue
			}
			b, err := store.Get(t.Context(), other)
			require.NoError(t, err)
			_, err = read(t, with(t, store, name, b))
			require.ErrorIs(t, err, sink.ErrDamaged, "%s in the place of %s", other, name)
		}
	}
	// An entry that goes away while a reader is at work.
	gone := store.Clone()
	r, err := sink.OpenFiles(t.Context(), gone, "counts", "root-1")
	require.NoError(t, err)
	require.NoError(t, gone.Delete(t.Context(), "counts/root-1/manifests/2"))
	_, _, err = r.Next(t.Context())
	require.ErrorIs(t, err, sink.ErrDamaged)
	require.ErrorContains(t, err, "it is gone")
}

// An entry that was well made, but put there by somebody else.
func TestFilesOtherLog(t *testing.T) {
	a := written(t)
	// The same history up to entry 2, then another epoch 2.
	b := vfs.NewObjects()
	f := openUnit(t, b, 1)
	commit(t, f, 1, 1, rows(sink.Lines(f, sink.Text[string]), "words", []string{"other"}))
	commit(t, f, 2, 1)
	entry, err := b.Get(t.Context(), "counts/root-1/manifests/3")
	require.NoError(t, err)
	_, err = read(t, with(t, a, "counts/root-1/manifests/3", entry))
	require.ErrorIs(t, err, sink.ErrDamaged)
	require.ErrorContains(t, err, "was not written after the entry before it")

	// The log of another root, or of another unit.
	for _, unit := range []*sink.Files{sink.NewFiles("counts", b), sink.NewFiles("other", b)} {
		root := map[string]string{"counts": "root-2", "other": "root-1"}[unit.Name()]
		require.NoError(t, unit.Fence(t.Context(), fenceOf(root, 1)))
		entry, err = b.Get(t.Context(), unit.Name()+"/"+root+"/manifests/1")
		require.NoError(t, err)
		c := with(t, a, "counts/root-1/manifests/1", entry)
		_, err = read(t, c)
		require.ErrorIs(t, err, sink.ErrDamaged)
		require.ErrorContains(t, err, root)
		only := vfs.NewObjects()
		only = with(t, only, "counts/root-1/manifests/1", entry)
		require.ErrorIs(t, sink.NewFiles("counts", only).Fence(t.Context(), fenceOf("root-1", 3)), sink.ErrDamaged)
		r, err := sink.OpenFiles(t.Context(), with(t, only, "counts/roots/root-1", nil), "counts", "")
		require.NoError(t, err)
		require.ErrorIs(t, r.After(t.Context(), 0), sink.ErrDamaged)
	}
}
