package sink_test

import (
	"context"
	"io"
	"io/fs"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

func TestFilesLayout(t *testing.T) {
	store := written(t)
	require.Equal(t, []string{
		"counts/root-1/data/raw%2Fx/0/1.0.1.1",
		"counts/root-1/data/words/0/1.0.1.1",
		"counts/root-1/data/words/0/1.2.1.1",
		"counts/root-1/data/words/0/4.1.2.1",
		"counts/root-1/manifests/1",
		"counts/root-1/manifests/2",
		"counts/root-1/manifests/3",
		"counts/root-1/manifests/4",
		"counts/root-1/manifests/5",
		"counts/roots/root-1",
	}, names(t, store))
	b, err := store.Get(t.Context(), "counts/root-1/data/words/0/1.0.1.1")
	require.NoError(t, err)
	require.Equal(t, "a 1\nb 2\n", string(b))
	b, err = store.Get(t.Context(), "counts/root-1/data/raw%2Fx/0/1.0.1.1")
	require.NoError(t, err)
	require.Equal(t, "\x00\x03x\ny", string(b))
	require.Equal(t, writtenRows, dump(t, store))
}

// What no manifest names does not exist, half files and whole ones.
func TestFilesUnnamedFilesAreIgnored(t *testing.T) {
	store := written(t)
	for _, name := range []string{"words/3.0.2.1", "words/1.1.1.1", "words/9.0.9.9", "other/1.0.1.1"} {
		require.NoError(t, store.PutIfAbsent(t.Context(), "counts/root-1/data/"+name, func(w io.Writer) error {
			_, err := io.WriteString(w, "half a li")
			return err
		}))
	}
	require.NoError(t, store.PutIfAbsent(t.Context(), "counts/root-1/manifests/README", func(io.Writer) error { return nil }))
	require.Equal(t, writtenRows, dump(t, store))
	openUnit(t, store, 3)
	require.Equal(t, writtenRows, dump(t, store))
}

func TestFilesReaderFollows(t *testing.T) {
	store := vfs.NewObjects()
	_, err := sink.OpenFiles(t.Context(), store, "counts", "")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "counts")
	f := openUnit(t, store, 1)
	r, err := sink.OpenFiles(t.Context(), store, "counts", "")
	require.NoError(t, err)
	require.Equal(t, "root-1", r.Root())
	s := sink.Lines(f, sink.Text[string])
	for epoch := uint64(1); epoch < 40; epoch++ {
		_, ok, err := r.Next(t.Context())
		require.NoError(t, err)
		require.False(t, ok)
		if epoch%5 == 0 {
			f = openUnit(t, store, epoch)
			s = sink.Lines(f, sink.Text[string])
		}
		m := commit(t, f, epoch*2, epoch, rows(s, "words", []string{"x"}))
		e, ok, err := r.Next(t.Context())
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, m, e.Memory)
		require.Len(t, e.Files, 1)
	}
	for after := range uint64(80) {
		r, err := sink.OpenFiles(t.Context(), store, "counts", "root-1")
		require.NoError(t, err)
		require.NoError(t, r.After(t.Context(), after))
		e, ok, err := r.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, after < 78, ok)
		if ok {
			require.Equal(t, (after/2+1)*2, e.Memory.Epoch)
		}
	}
}

// A reader needs few entries to find an epoch, however long the log is.
func TestFilesAfterReadsFewEntries(t *testing.T) {
	store := vfs.NewObjects()
	f := openUnit(t, store, 1)
	for epoch := uint64(1); epoch <= 500; epoch++ {
		commit(t, f, epoch, 1)
	}
	log := vfs.NewLog("", vfs.KindAll)
	r, err := sink.OpenFiles(t.Context(), vfs.WithStoreLog(store, log), "counts", "")
	require.NoError(t, err)
	require.NoError(t, r.After(t.Context(), 321))
	require.LessOrEqual(t, log.Count(vfs.KindGet), 10)
	// So does a start, which needs the last one only.
	log = vfs.NewLog("", vfs.KindAll)
	f = sink.NewFiles("counts", vfs.WithStoreLog(store, log))
	require.NoError(t, f.Fence(t.Context(), fenceOf("root-1", 2)))
	require.Equal(t, 1, log.Count(vfs.KindGet))
	require.Zero(t, log.Count(vfs.KindList))
	require.LessOrEqual(t, log.Count(vfs.KindStat), 20)
	// An epoch costs its files and its entry, and no listing.
	log.Reset()
	commit(t, f, 501, 2, rows(sink.Lines(f, sink.Text[string]), "words", []string{"x"}, nil))
	require.Equal(t, 2, log.Count(vfs.KindPut))
	require.Zero(t, log.Count(vfs.KindList|vfs.KindGet|vfs.KindStat))
}

// A fork has another root id: it starts anew in a folder of its own, and says so.
func TestFilesRoots(t *testing.T) {
	store := written(t)
	f := sink.NewFiles("counts", store)
	var notices []string
	fence := sink.Fence{Root: "fork", Run: "r", Term: 1, Notice: func(s string) { notices = append(notices, s) }}
	require.NoError(t, f.Fence(t.Context(), fence))
	require.Len(t, notices, 1)
	require.Contains(t, notices[0], "root-1")
	require.Contains(t, notices[0], "counts/fork/")
	_, ok, err := f.Memory(t.Context())
	require.NoError(t, err)
	require.False(t, ok)
	commit(t, f, 1, 1, rows(sink.Lines(f, sink.Text[string]), "words", []string{"fork"}))
	require.NoError(t, f.Fence(t.Context(), fence))
	require.Len(t, notices, 1, "only a start from nothing is news")

	_, err = sink.OpenFiles(t.Context(), store, "counts", "")
	require.ErrorContains(t, err, "fork, root-1")
	r, err := sink.OpenFiles(t.Context(), store, "counts", "fork")
	require.NoError(t, err)
	e, ok, err := r.Next(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, uint64(1), e.Memory.Epoch)
	r, err = sink.OpenFiles(t.Context(), store, "counts", "no such root")
	require.NoError(t, err)
	_, ok, err = r.Next(t.Context())
	require.NoError(t, err)
	require.False(t, ok)
}

// Rows end early when the reader's user has enough.
func TestFilesRowsStop(t *testing.T) {
	r, err := sink.OpenFiles(t.Context(), written(t), "counts", "")
	require.NoError(t, err)
	n := 0
	for range r.Rows(t.Context()) {
		if n++; n == 3 {
			break
		}
	}
	require.Equal(t, 3, n)
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range r.Rows(dead) {
		require.ErrorIs(t, err, context.Canceled)
		n++
	}
	require.Equal(t, 4, n)
}
