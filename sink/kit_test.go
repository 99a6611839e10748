package sink_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fenceOf(root string, term uint64) sink.Fence {
	return sink.Fence{Root: root, Run: fmt.Sprintf("run-%d", term), Term: term}
}

func openUnit(t *testing.T, store vfs.Store, term uint64) *sink.Files {
	t.Helper()
	f := sink.NewFiles("counts", store)
	require.NoError(t, f.Fence(t.Context(), fenceOf("root-1", term)))
	return f
}

// rows gives parts of text to a sink.
func rows(s sink.Sink[string], name string, parts ...[]string) sink.Output {
	return sink.Bind(s, name, len(parts), func(_ context.Context, part int, yield func(string) error) error {
		for _, r := range parts[part] {
			if err := yield(r); err != nil {
				return err
			}
		}
		return nil
	})
}

func commit(t *testing.T, u sink.Unit, epoch, term uint64, outputs ...sink.Output) sink.Memory {
	t.Helper()
	w, err := sink.NewWriter(u, epoch, outputs, nil)
	require.NoError(t, err)
	out, err := w.Prepare(t.Context(), false)
	require.NoError(t, err)
	m := sink.Memory{Epoch: epoch, Term: term, Output: out, Digest: sink.Digest([]sink.Sum{{9}}, out)}
	require.NoError(t, w.Commit(t.Context(), m))
	return m
}

// written is a store with two runs' epochs of two outputs.
func written(t *testing.T) *vfs.Objects {
	store := vfs.NewObjects()
	f := openUnit(t, store, 1)
	lines := sink.Lines(f, sink.Text[string])
	records := sink.Records(f, sink.Text[string])
	commit(t, f, 1, 1, rows(lines, "words", []string{"a 1", "b 2"}, nil, []string{"c 3"}), rows(records, "raw/x", []string{"", "x\ny"}))
	commit(t, f, 2, 1, rows(lines, "words", nil, nil, nil), rows(records, "raw/x", nil))
	f = openUnit(t, store, 2)
	commit(t, f, 4, 2, rows(sink.Lines(f, sink.Text[string]), "words", nil, []string{"d 4", ""}, nil))
	return store
}

// dump is what a reader gives, a row a line.
func dump(t *testing.T, store vfs.Store) string {
	t.Helper()
	r, err := sink.OpenFiles(t.Context(), store, "counts", "")
	require.NoError(t, err)
	var b strings.Builder
	for row, err := range r.Rows(t.Context()) {
		require.NoError(t, err)
		fmt.Fprintf(&b, "%d %s/%d %q\n", row.Epoch, row.Output, row.Partition, row.Data)
	}
	return b.String()
}

const writtenRows = `1 raw/x/0 ""
1 raw/x/0 "x\ny"
1 words/0 "a 1"
1 words/0 "b 2"
1 words/2 "c 3"
4 words/1 "d 4"
4 words/1 ""
`

// with is the store with other bytes in one object.
func with(t *testing.T, s *vfs.Objects, name string, b []byte) *vfs.Objects {
	t.Helper()
	c := s.Clone()
	require.NoError(t, c.Delete(t.Context(), name))
	require.NoError(t, c.PutIfAbsent(t.Context(), name, func(w io.Writer) error { _, err := w.Write(b); return err }))
	return c
}

func names(t *testing.T, s vfs.Store) (list []string) {
	t.Helper()
	objects, err := s.List(t.Context(), "")
	require.NoError(t, err)
	for _, o := range objects {
		list = append(list, o.Name)
	}
	slices.Sort(list)
	return list
}
