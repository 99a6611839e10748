package dstream_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/staterdd"
)

// layout is what must not change the answer of a job.
type layout struct{ partitions, workers, block, threshold, retries int }

// answer runs batches of words through a job with time-outs and gives the
// outputs in order, the state with its times, and the snapshots.
func answer(t *testing.T, batches [][]string, l layout) (mapped [][]string, reduced [][]pair, state []any) {
	r := newRig(t, time.Second, func(c ssc) error {
		pairs := dstream.MapPair(dstream.From(c, "in", newScript(3, batches...)), func(s string) (string, int) { return s, len(s) })
		s := dstream.MapWithState(pairs, dstream.Function(func(k string, v dstream.Option[int], s *dstream.State[int]) string {
			if s.IsTimingOut() {
				return fmt.Sprint(k, " over at ", s.Get())
			}
			if s.OrElse(0) > 20 {
				s.Remove()
				return k + " full"
			}
			s.Update(s.OrElse(0) + v.OrElse(0))
			return fmt.Sprint(k, s.Get())
		}).Named("count").Timeout(2*time.Second).NumPartitions(l.partitions).DeltaChainThreshold(l.threshold))
		dstream.Print(s, 1, dstream.Name("mapped"))
		dstream.Print(dstream.ReduceByKey(pairs, add, dstream.NumPartitions(l.partitions)), 1, dstream.Name("reduced"))
		return nil
	}, dstream.WithParallelism(4), dstream.WithTaskRetries(l.retries))
	r.h.SetWorkers(l.workers)
	r.h.SetBlockSize(l.block)
	r.start().tick(len(batches) + 4)
	for _, row := range stateRows[string, int](r, "count") {
		row.Partition = 0
		state = append(state, row)
	}
	require.NoError(t, r.ssc.Stop(t.Context()))
	return out[string](r, "mapped"), out[pair](r, "reduced"), state
}

// Other partition counts, thresholds, block sizes and worker counts give the same
// answer; with the same partitions also in the same order.
func TestLayoutDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "bb", "ccc", "dddd", "e", "ff", "ggg"})
		batches := rapid.SliceOfN(rapid.SliceOfN(word, 0, 40), 1, 6).Draw(rt, "batches")
		draw := func(partitions int) layout {
			return layout{
				partitions, rapid.IntRange(1, 4).Draw(rt, "workers"), rapid.IntRange(1, 64).Draw(rt, "block"),
				rapid.IntRange(1, 30).Draw(rt, "threshold"), rapid.IntRange(0, 2).Draw(rt, "retries"),
			}
		}
		n := rapid.IntRange(1, 6).Draw(rt, "partitions")
		mapped, reduced, state := answer(t, batches, draw(n))
		mapped2, reduced2, state2 := answer(t, batches, draw(n))
		require.Equal(t, mapped, mapped2)
		require.Equal(t, reduced, reduced2)
		require.Equal(t, state, state2)
		mapped3, reduced3, state3 := answer(t, batches, draw(rapid.IntRange(1, 6).Draw(rt, "others")))
		require.Equal(t, state, state3)
		for i := range mapped {
			require.ElementsMatch(t, mapped[i], mapped3[i])
			require.ElementsMatch(t, reduced[i], reduced3[i])
		}
	})
}

// R7: a remembered batch pins its state only if something reads it.
func TestRememberedBatchesPinStateOnlyForReaders(t *testing.T) {
	for _, reads := range []bool{false, true} {
		t.Run(fmt.Sprint(reads), func(t *testing.T) {
			r := newRig(t, time.Second, func(c ssc) error {
				s := dstream.MapWithState(ones(c, inputA), dstream.Function(count).Named("count"))
				dstream.Print(s, 1)
				if reads {
					dstream.Print(s.StateSnapshots(), 1)
				}
				return nil
			}, dstream.WithRemember(3*time.Second)).start()
			type version = *staterdd.MapWithStateRDD[string, int, int]
			var versions []version
			for range 6 {
				r.tick(1)
				versions = append(versions, dstream.CurrentVersion(r.ssc, "count").(version))
			}
			var readable []bool
			for _, v := range versions {
				_, _, err := v.Get("a")
				readable = append(readable, err == nil)
			}
			want := []bool{false, false, false, false, false, true}
			if reads {
				want = []bool{false, false, false, true, true, true}
			}
			require.Equal(t, want, readable)
		})
	}
}

// Versions pinned by Retain stay as they were while the state moves on; memory
// is what changed, not what is there.
func TestSixtyPinnedVersions(t *testing.T) {
	const keys, versions = 20_000, 60
	first := make([]string, keys)
	for i := range first {
		first[i] = fmt.Sprintf("key-%012d", i)
	}
	batches := [][]string{first}
	for v := range versions {
		batches = append(batches, first[v*200:v*200+200]) // 1 % each
	}
	var held []*dstream.RDD[pair]
	var one int64
	r := newRig(t, time.Second, func(c ssc) error {
		s := dstream.MapWithState(ones(c, batches), dstream.Function(count).Named("count").NumPartitions(1))
		hold(s, &held)
		return nil
	})
	r.h.OnOutput(nil)
	r.start().tick(1)
	one = r.last().Operators[0].HeapBytes
	r.tick(versions)
	require.Len(t, held, versions+1)
	sums := func(r *dstream.RDD[pair]) int { return sumOf(t, r) }
	for i, v := range held {
		require.Equal(t, keys+200*i, sums(v), "version %d", i)
	}
	// The operator's HeapBytes is the newest table's alone: what the old versions
	// hold is seen in the heap. The stop waits for moves that run beside batches.
	require.NoError(t, r.ssc.Stop(context.Background()))
	pinned := heapNow()
	for i, v := range held {
		v.Release()
		held[i] = nil
	}
	old := pinned - heapNow()
	require.LessOrEqual(t, old, 4*one, "beside the newest table")
	require.Greater(t, old, one/4, "the measure sees what is pinned")
	runtime.KeepAlive(r)
}

func heapNow() int64 {
	var m runtime.MemStats
	for range 2 { // what has finalizers takes two rounds
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
