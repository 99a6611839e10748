package dstream_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

func sumsOf(length, slide time.Duration) dstream.Job {
	return func(c ssc) error {
		in := dstream.QueueNamed[kv](c, "in", 1)
		dstream.Print(dstream.ReduceByKeyAndWindowInverse(in, add, subtract, nil, length, slide, dstream.Name("sums")), 0)
		return nil
	}
}

// forgetWindow takes the windows out of the metadata, as if an older program had written it.
func forgetWindow(t *testing.T, store vfs.Store) {
	t.Helper()
	name := checkpoint.MetadataName(1)
	b, err := store.Get(t.Context(), name)
	require.NoError(t, err)
	doc, err := checkpoint.DecodeDocument(name, b)
	require.NoError(t, err)
	found := false
	ops := doc.(*checkpoint.Metadata).Operators
	for i := range ops {
		if ops[i].Settings["window"] != "" {
			found, ops[i].Settings = true, nil
		}
	}
	require.True(t, found)
	b, err = checkpoint.EncodeDocument(doc)
	require.NoError(t, err)
	require.NoError(t, store.Delete(t.Context(), name))
	require.NoError(t, store.PutIfAbsent(t.Context(), name, func(w io.Writer) error { _, err := w.Write(b); return err }))
}

// A new program whose inverse window is another one is refused, with both windows: the results would be
// wrong for ever. The old program goes on, and under another name the new one begins anew.
func TestInverseWindowChanged(t *testing.T) {
	for name, to := range map[string][2]time.Duration{"shorter": {2 * sec, sec}, "longer": {6 * sec, sec}, "slide": {4 * sec, 2 * sec}} {
		t.Run(name, func(t *testing.T) {
			kit := milltest.New(t, sec, sumsOf(4*sec, sec))
			kit.Checkpoint()
			in := milltest.Input[kv](kit, "in")
			for i := range 8 {
				in.Batch(kv{Key: "a", Value: 1 << i})
			}
			kit.Tick(6)
			refused := func() {
				t.Helper()
				kit.Restart()
				kit.Job(sumsOf(to[0], to[1]))
				err := kit.Start()
				require.ErrorIs(t, err, dstream.ErrWindowChanged)
				require.ErrorContains(t, err, `window "sums"`)
				require.ErrorContains(t, err, "there: 4s every 1s, in the program: "+to[0].String()+" every "+to[1].String())
			}
			there := files(t, kit.CheckpointFS())
			refused()
			require.Equal(t, there, files(t, kit.CheckpointFS()), "P1: it is told before anything is written")
			// Older programs did not store the window in the metadata, but with the batches.
			forgetWindow(t, kit.CheckpointStore("test"))
			refused()
			kit.Restart()
			kit.Job(sumsOf(4*sec, sec))
			kit.Tick(1)
			require.NoError(t, kit.Err())
			require.Equal(t, map[string]int{"a": 8 + 16 + 32 + 64}, milltest.State[string, int](kit, "sums"))
			kit.Restart()
			kit.Job(func(c ssc) error {
				in := dstream.QueueNamed[kv](c, "in", 1)
				dstream.Print(dstream.ReduceByKeyAndWindowInverse(in, add, subtract, nil, to[0], to[1], dstream.Name("other")), 0)
				return nil
			}, dstream.WithDrop("sums", "sums batches"))
			kit.Tick(1)
			require.NoError(t, kit.Err())
			require.Equal(t, map[string]int{"a": 128}, milltest.State[string, int](kit, "other"))
		})
	}
}
