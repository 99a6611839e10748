package exactlyonce

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/sink"
)

// root is the checkpoint's objects.
func (w *world) root() map[string][]byte {
	m := map[string][]byte{}
	list, err := w.objects.List(context.Background(), "ckpt/")
	require.NoError(w, err)
	for _, o := range list {
		m[o.Name], err = w.objects.Get(context.Background(), o.Name)
		require.NoError(w, err)
	}
	return m
}

// restore puts a backup in the place of the checkpoint.
func (w *world) restore(backup map[string][]byte) {
	for name := range w.root() {
		require.NoError(w, w.objects.Delete(context.Background(), name))
	}
	for name, b := range backup {
		require.NoError(w, w.objects.PutIfAbsent(context.Background(), name, func(out io.Writer) error { _, err := out.Write(b); return err }))
	}
}

// A checkpoint that was set back by more than one epoch is refused, and the sinks
// stay as they are.
func TestRewoundCheckpointIsRefused(t *testing.T) {
	for _, kinds := range []string{"a", "k", "abk"} {
		w := newWorld(t, kinds, false)
		require.NoError(t, w.life(nil).runTo(1))
		backup := w.root()
		w.later()
		require.NoError(t, w.life(nil).run())
		require.Equal(t, wanted(kinds), w.sees())
		w.restore(backup)
		// Sinks that keep terms know later ones than the root that was set back; each
		// start raises the root's by one.
		var e *checkpoint.MemoryError
		for starts := 1; e == nil; starts++ {
			w.later()
			err := w.life(nil).run()
			require.ErrorIs(t, err, checkpoint.ErrRefused, kinds)
			require.ErrorContains(t, err, "older copy")
			errors.As(err, &e)
			require.LessOrEqual(t, starts, 3)
			require.Equal(t, wanted(kinds), w.sees())
		}
		require.EqualValues(t, 1, e.Want)
		require.Greater(t, e.Have, e.Want+1)
	}
}

// A new checkpoint has another root id: its output starts anew beside the old.
func TestNewCheckpointStartsAnew(t *testing.T) {
	w := newWorld(t, "ab", false)
	require.NoError(t, w.life(nil).run())
	w.restore(nil)
	w.later()
	l := w.life(nil)
	require.NoError(t, l.run())
	require.Contains(t, strings.Join(l.note, "\n"), "starts anew")
	roots, err := sink.FileRoots(t.Context(), w.store("out", "reader", nil), "a")
	require.NoError(t, err)
	require.Len(t, roots, 2)
	for _, root := range roots {
		r, err := sink.OpenFiles(t.Context(), w.store("out", "reader", nil), "a", root)
		require.NoError(t, err)
		n := 0
		for _, err := range r.Rows(t.Context()) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, strings.Count(wanted("a"), "\n")+1, n)
	}
}
