package dstream_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

// snapshotWord is one change of the state: the key is set, or removed.
type snapshotWord struct {
	Key    string
	Remove bool
}

// snapshotsOf gives the states that follow from the words, as three operators have them: by
// records, with a timeout, with deadlines.
func snapshotsOf(c ssc) (byWord, byTime, byDeadline *dstream.DStream[word]) {
	words := dstream.KeyBy(dstream.QueueNamed[snapshotWord](c, "words", 1), func(w snapshotWord) string { return w.Key })
	count := func(_ string, w dstream.Option[snapshotWord], s *dstream.State[int]) int {
		switch got, ok := w.Get(); {
		case !ok: // its time is over
		case got.Remove && s.Exists():
			s.Remove()
		case !got.Remove:
			s.Update(s.OrElse(0) + 1)
		}
		return 0
	}
	plain := dstream.MapWithState(words, dstream.Function(count).Named("plain").NumPartitions(1))
	timed := dstream.MapWithState(words, dstream.Function(count).Named("timed").NumPartitions(2).Timeout(2*time.Second))
	keyed := dstream.Keyed(words, "keyed", func(c *dstream.Call[int, int], _ string, w dstream.Option[snapshotWord]) error {
		if w.IsSome() {
			c.State.Update(c.State.OrElse(0) + 1)
			c.SetDeadline(c.Batch.Time.Add(3 * time.Second))
		}
		return nil
	}, dstream.NumPartitions(2))
	return plain.StateSnapshots(), timed.StateSnapshots(), keyed.StateSnapshots()
}

// snapshotBatches has keys that come, go and come again, so that the slots of those that went are
// given to others.
func snapshotBatches(keys int) (batches [][]snapshotWord) {
	for b := range 5 {
		var batch []snapshotWord
		for i := range keys {
			switch n := (i*7 + b*3) % 10; {
			case b == 0, n < 3:
				batch = append(batch, snapshotWord{Key: fmt.Sprint("k", (i*7919+b)%keys)})
			case n == 5:
				batch = append(batch, snapshotWord{Key: fmt.Sprint("k", i), Remove: true})
			}
		}
		batches = append(batches, append(batch, snapshotWord{Key: fmt.Sprint("new", b)}))
	}
	return append([][]snapshotWord{{{Key: "k0"}, {Key: "k1"}, {Key: "k2"}}, {{Key: "k0", Remove: true}}, {{Key: "new"}}}, batches...)
}

// CP3: a job that saves the state after each batch, and a window of it, goes on after a crash
// between the files of an epoch and its commit, at each epoch: what is redone on loaded state
// writes the same bytes, else it would end with batchfiles.ErrDiffers for ever. What stands there in
// the end is what a run without a crash and without a checkpoint writes.
func TestSavedSnapshotsAreRedone(t *testing.T) {
	boom := errors.New("boom")
	for _, keys := range []int{10, 300} {
		batches := snapshotBatches(keys)
		run := func(crashes bool) map[string]string {
			mem, life := vfs.NewMem(), 0
			kit := milltest.New(t, time.Second, func(c ssc) error {
				life++
				store, err := vfs.NewDir(mem, "/out", fmt.Sprint("life", life))
				if err != nil {
					return err
				}
				a, b, d := snapshotsOf(c)
				all := dstream.Union(a, b, d)
				dstream.SaveAsTextFiles(all, "states", "", dstream.SaveIn(store), dstream.Name("states"))
				held := dstream.Window(b, 2*time.Second, time.Second).Named("held")
				dstream.SaveAsRecordFiles(held, "held", "", dstream.SaveIn(store), dstream.Name("held states"))
				dstream.Print(dstream.Count(all), 1, dstream.Name("last"))
				return nil
			})
			if crashes {
				kit.Checkpoint(dstream.SnapshotEvery(1))
			}
			milltest.Input[snapshotWord](kit, "words").Batches(batches...)
			for range batches {
				if crashes {
					kit.FailOutput("last", 1, boom)
				}
				kit.Tick(1)
				if crashes {
					require.ErrorIs(t, kit.Err(), boom, "keys %d", keys)
					kit.Crash()
					require.NoError(t, kit.Start())
					kit.Await() // the epoch is redone
					require.NoError(t, kit.Err(), "keys %d, life %d", keys, life)
				}
			}
			return contents(t, mem, "/out")
		}
		want := run(false)
		require.Greater(t, len(want), 4*len(batches))
		require.Equal(t, want, run(true), "keys %d", keys)
	}
}

// contents are the files below a folder.
func contents(t *testing.T, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	store, err := vfs.NewDir(fsys, dir, "reader")
	require.NoError(t, err)
	list, err := store.List(t.Context(), "")
	require.NoError(t, err)
	out := map[string]string{}
	for _, o := range list {
		b, err := store.Get(t.Context(), o.Name)
		require.NoError(t, err)
		out[o.Name] = string(b)
	}
	return out
}
