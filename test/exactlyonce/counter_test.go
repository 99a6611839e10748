package exactlyonce

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
)

// count counts words in a function, and batches and rows in an output.
func (l *life) count(words *dstream.DStream[string]) {
	seen, batches, rows := l.ssc.Counter("seen"), l.ssc.Counter("batches"), l.ssc.Counter("rows")
	counted := dstream.Map(words, func(w string) string { seen.Add(1); return w })
	dstream.ForeachRDD(counted, func(ctx context.Context, _ dstream.Batch, r *rdd.RDD[string]) error {
		batches.Add(1)
		return rdd.ForeachPartition(ctx, r, func(_ context.Context, _ int, in iter.Seq[string]) error {
			for range in {
				rows.Add(1)
			}
			return nil
		})
	}, dstream.Name("counted"))
}

// counts sees that the newest commit counts every committed epoch once, and tells the
// rows of its own.
func (w *world) counts(t require.TestingT, what string) {
	c, err := checkpoint.OpenRoot(w.store(w.folder, "reader", nil)).Newest(context.Background())
	require.NoError(t, err, what)
	if c == nil {
		return
	}
	words, last := 0, 0
	for i, batch := range script {
		if uint64(i) < c.Epoch {
			words += len(batch)
		}
		if uint64(i)+1 == c.Epoch {
			last = len(batch)
		}
	}
	for name, n := range map[string]int{"total.seen": words, "total.rows": words, "total.batches": int(c.Epoch), "inputRows": last} {
		require.EqualValues(t, n, c.Counters[name], "%s: %s after epoch %d, committed by term %d", what, name, c.Epoch, c.Term)
	}
}

// tidy sees that of what was counted only that of the newest epoch is left: nobody can
// want more (P5).
func (w *world) tidy(t *testing.T, what string) {
	store := w.store(w.folder, "reader", nil)
	c, err := checkpoint.OpenRoot(store).Newest(t.Context())
	require.NoError(t, err, what)
	list, err := store.List(t.Context(), "counts/")
	require.NoError(t, err, what)
	var left []string
	for _, o := range list {
		left = append(left, o.Name)
	}
	require.Equal(t, []string{checkpoint.CountsName(c.Epoch, c.Term)}, left, what)
}

// The machine loses power before every call to the disk, the object store or the Kafka,
// and after it: counters count every committed epoch once, those that are adopted too.
func TestCountersOverACrashAtEveryCall(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	for _, disk := range []bool{true, false} {
		adopted := 0
		for at := 1; ; at += step {
			w := newWorld(t, "abkc", disk)
			in := &vfs.Faults{}
			in.Fail(vfs.Rule{K: at, After: at%3 == 0, Dead: true})
			err := w.life(in).run()
			if in.Hits() == 0 {
				require.NoError(t, err)
				w.counts(t, "without a crash")
				break
			}
			w.crash(uint64(at), at%2*50)
			what := fmt.Sprintf("disk %v, call %d", disk, at)
			w.counts(t, what)
			l := w.life(nil)
			require.NoError(t, l.run(), what)
			w.counts(t, what)
			require.EqualValues(t, 8, l.ssc.Counter("seen").Value(), what)
			// What a life left that came to no commit at all, the next but one sweeps.
			w.later()
			require.NoError(t, w.life(nil).run(), what)
			w.counts(t, what)
			w.tidy(t, what)
			for _, n := range l.note {
				if n == "epoch 2 was out already and is committed as it was written" {
					adopted++
				}
			}
		}
		if step == 1 { // few calls lie between the last sink's commit and the checkpoint's
			require.Positive(t, adopted)
		}
		t.Log("disk", disk, "adopted", adopted)
	}
}

// Any number of crashes, also while an earlier one is being mended.
func TestCountersOverCrashes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.SampledFrom([]string{"abkc", "bc", "akc"}).Draw(rt, "sinks"), rapid.Bool().Draw(rt, "disk"))
		for range rapid.IntRange(1, 5).Draw(rt, "crashes") {
			in := &vfs.Faults{}
			in.Fail(vfs.Rule{K: rapid.IntRange(1, 400).Draw(rt, "call"), After: rapid.Bool().Draw(rt, "after"), Dead: true})
			_ = w.life(in).run()
			w.crash(rapid.Uint64().Draw(rt, "seed"), rapid.SampledFrom([]int{0, 50, 100}).Draw(rt, "percent"))
			w.counts(rt, "after a crash")
		}
		require.NoError(rt, w.life(nil).run())
		w.counts(rt, "at the end")
	})
}

// An older run sleeps before every call, while a newer one does everything: nothing that
// it counted is counted again when it wakes up.
func TestCountersOfAZombie(t *testing.T) {
	zombies(t, "abkc", 1, nil, func(w *world, what string, newer error) {
		require.NoError(t, newer, what)
		w.counts(t, what)
	})
}
