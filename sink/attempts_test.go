package sink_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// A copy of a root has its terms too; the bytes decide who an entry is of.
func TestFilesCopiedRoot(t *testing.T) {
	store := vfs.NewObjects()
	a, b := sink.NewFiles("counts", store), sink.NewFiles("counts", store)
	require.NoError(t, a.Fence(t.Context(), sink.Fence{Root: "r", Run: "a", Term: 1}))
	err := b.Fence(t.Context(), sink.Fence{Root: "r", Run: "b", Term: 1})
	require.ErrorIs(t, err, sink.ErrNotOwner)
	var e *sink.NotOwnerError
	require.ErrorAs(t, err, &e)
	require.Equal(t, sink.NotOwnerError{Unit: "counts", Term: 1, Newer: 1}, *e)

	// Data of another process under the name that this one would use is not taken
	// for its own.
	name := "counts/r/data/words/0/1.0.1.1"
	require.NoError(t, store.PutIfAbsent(t.Context(), name, func(w io.Writer) error { _, err := io.WriteString(w, "other\n"); return err }))
	w, err := sink.NewWriter(a, 1, []sink.Output{rows(sink.Lines(a, sink.Text[string]), "words", []string{"mine"})}, nil)
	require.NoError(t, err)
	_, err = w.Prepare(t.Context(), false)
	require.ErrorIs(t, err, sink.ErrDamaged)
	require.ErrorContains(t, err, name)
}

func TestFilesNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "a b", "roots", "é", "x.tmp.y", strings.Repeat("a", 101)} {
		f := sink.NewFiles(name, vfs.NewObjects())
		require.ErrorIs(t, f.Fence(t.Context(), fenceOf("r", 1)), sink.ErrMisuse, name)
		f = sink.NewFiles("n", vfs.NewObjects())
		require.ErrorIs(t, f.Fence(t.Context(), fenceOf(name, 1)), sink.ErrMisuse, name)
	}
	f := sink.NewFiles("n", vfs.NewObjects())
	require.ErrorIs(t, f.Fence(t.Context(), fenceOf("r", 0)), sink.ErrMisuse)
	require.ErrorIs(t, f.Fence(t.Context(), sink.Fence{Root: "r", Run: "\xff", Term: 1}), sink.ErrMisuse)

	f = openUnit(t, vfs.NewObjects(), 1)
	for _, output := range []string{"", "\xff"} {
		w, err := sink.NewWriter(f, 1, []sink.Output{rows(sink.Lines(f, sink.Text[string]), output, []string{"x"})}, nil)
		require.NoError(t, err)
		_, err = w.Prepare(t.Context(), false)
		require.ErrorIs(t, err, sink.ErrMisuse)
	}
	// Any other text is a name.
	store := vfs.NewObjects()
	f = openUnit(t, store, 1)
	commit(t, f, 1, 1, rows(sink.Lines(f, sink.Text[string]), "wörter \"/..\" <&>\n", []string{"x"}))
	require.Equal(t, "1 wörter \"/..\" <&>\n/0 \"x\"\n", dump(t, store))
}

func TestFilesRefuse(t *testing.T) {
	f := openUnit(t, vfs.NewObjects(), 1)
	s := sink.Lines(f, sink.Text[string])
	w, err := sink.NewWriter(f, 1, []sink.Output{rows(s, "words", []string{"a", "b\nc"})}, nil)
	require.NoError(t, err)
	_, err = w.Prepare(t.Context(), false)
	require.ErrorContains(t, err, "row 1: the row contains a newline")
	require.ErrorContains(t, err, "output words: partition 0")

	s.Target = "parquet"
	w, err = sink.NewWriter(f, 1, []sink.Output{rows(s, "words", []string{"a"})}, nil)
	require.NoError(t, err)
	_, err = w.Prepare(t.Context(), false)
	require.ErrorIs(t, err, sink.ErrMisuse)

	tx, err := f.Begin(t.Context(), 1)
	require.NoError(t, err)
	none := func(func([]byte) error) error { return nil }
	p := sink.Part{Output: "words", Target: "lines", Index: 0, Of: 1}
	require.NoError(t, tx.Write(t.Context(), p, none))
	require.ErrorIs(t, tx.Write(t.Context(), p, none), sink.ErrMisuse, "twice")
	p.Index = 7
	require.NoError(t, tx.Write(t.Context(), p, func(yield func([]byte) error) error { return yield([]byte("x")) }))
	require.ErrorIs(t, tx.Commit(t.Context(), sink.Memory{Epoch: 1, Term: 1}), sink.ErrMisuse, "partition 7 of 1")
}

// An aborted attempt and the one after it never share a file.
func TestFilesAttemptsHaveNamesOfTheirOwn(t *testing.T) {
	store := vfs.NewObjects()
	f := openUnit(t, store, 1)
	s := sink.Lines(f, sink.Text[string])
	w, err := sink.NewWriter(f, 1, []sink.Output{rows(s, "words", []string{"first"})}, nil)
	require.NoError(t, err)
	_, err = w.Prepare(t.Context(), false)
	require.NoError(t, err)
	require.NoError(t, w.Abort(t.Context()))
	commit(t, f, 1, 1, rows(s, "words", []string{"second"}))
	require.Equal(t, "1 words/0 \"second\"\n", dump(t, store))
	require.Equal(t, 2, strings.Count(strings.Join(names(t, store), "\n"), "/data/"))
}

// A commit whose answer was lost, given up and begun again, is found in the log.
func TestFilesCommitTwiceByOneRun(t *testing.T) {
	for _, other := range []bool{false, true} {
		store := vfs.NewObjects()
		var faults vfs.Faults
		f := sink.NewFiles("counts", vfs.WithStoreFaults(store, &faults))
		require.NoError(t, f.Fence(t.Context(), fenceOf("r", 1)))
		faults.Fail(vfs.Rule{Kinds: vfs.KindPut, Path: "manifests/2", After: true})
		s := sink.Lines(f, sink.Text[string])
		for try := range 2 {
			text := []string{"x"}
			if other && try == 1 {
				text = []string{"y"}
			}
			w, err := sink.NewWriter(f, 1, []sink.Output{rows(s, "words", text)}, nil)
			require.NoError(t, err)
			out, err := w.Prepare(t.Context(), false)
			require.NoError(t, err)
			err = w.Commit(t.Context(), sink.Memory{Epoch: 1, Term: 1, Output: out})
			switch {
			case try == 0:
				require.ErrorIs(t, err, vfs.ErrInjected)
				require.NoError(t, w.Abort(t.Context()))
			case other:
				require.ErrorIs(t, err, sink.ErrEpoch)
				require.NoError(t, w.Abort(t.Context()))
			default:
				require.NoError(t, err)
			}
		}
		require.Equal(t, "1 words/0 \"x\"\n", dump(t, store))
		m, ok, err := f.Memory(t.Context())
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, uint64(1), m.Epoch)
		// The next epoch goes on from there.
		commit(t, f, 2, 1)
	}
	// The same, but with another epoch: only another fence can tell.
	store := vfs.NewObjects()
	var faults vfs.Faults
	f := sink.NewFiles("counts", vfs.WithStoreFaults(store, &faults))
	require.NoError(t, f.Fence(t.Context(), fenceOf("r", 1)))
	faults.Fail(vfs.Rule{Kinds: vfs.KindPut, Path: "manifests/2", After: true})
	for epoch := uint64(1); epoch <= 2; epoch++ {
		w, err := sink.NewWriter(f, epoch, nil, nil)
		require.NoError(t, err)
		out, err := w.Prepare(t.Context(), false)
		require.NoError(t, err)
		err = w.Commit(t.Context(), sink.Memory{Epoch: epoch, Term: 1, Output: out})
		require.Error(t, err)
		require.Equal(t, epoch == 2, errors.Is(err, sink.ErrUnknown), err)
		require.NoError(t, w.Abort(t.Context()))
	}
}

// forgetful is a store that puts data files and then says that they were there, as
// one does that tries again by itself after a lost answer.
type forgetful struct{ *vfs.Objects }

func (s forgetful) PutIfAbsent(ctx context.Context, name string, write func(io.Writer) error) error {
	err := s.Objects.PutIfAbsent(ctx, name, write)
	if err == nil && strings.Contains(name, "/data/") {
		err = fs.ErrExist
	}
	return err
}

// P4: a taken name is read back, and may be one's own.
func TestFilesOwnDataIsRecognised(t *testing.T) {
	store := vfs.NewObjects()
	f := sink.NewFiles("counts", forgetful{store})
	require.NoError(t, f.Fence(t.Context(), fenceOf("r", 1)))
	commit(t, f, 1, 1, rows(sink.Records(f, sink.Text[string]), "words", []string{"a", "b"}, []string{"c"}))
	require.Equal(t, "1 words/0 \"a\"\n1 words/0 \"b\"\n1 words/1 \"c\"\n", dump(t, store))
}
