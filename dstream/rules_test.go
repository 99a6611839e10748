package dstream_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/rdd"
)

type pair = dstream.Pair[string, int]

// R1: several outputs and snapshots, and a stream with several consumers: the
// functions run once per record, and the source is read once.
func TestEachFunctionRunsOnce(t *testing.T) {
	var maps, updates, tails atomic.Int64
	src := newScript(2, inputA...)
	r := newRig(t, time.Second, func(c ssc) error {
		in := dstream.From(c, "in", src)
		pairs := dstream.MapPair(in, func(s string) (string, int) { maps.Add(1); return s, 1 })
		s := dstream.MapWithState(pairs, dstream.Function(func(k string, v dstream.Option[int], st *dstream.State[int]) int {
			updates.Add(1)
			return count(k, v, st)
		}))
		tail := dstream.Map(s, func(i int) int { tails.Add(1); return i })
		for range 2 {
			dstream.Print(tail, 1)
			dstream.Print(s, 1)
			dstream.Print(s.StateSnapshots(), 1)
			dstream.Print(pairs, 1)
			dstream.Print(dstream.Count(in), 1)
		}
		dstream.ForeachRDD(tail, func(ctx context.Context, _ dstream.Batch, r *dstream.RDD[int]) error {
			for range 3 {
				if _, err := rdd.Count(ctx, r); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	}).start().tick(7)
	const records = 9
	require.EqualValues(t, records, maps.Load())
	require.EqualValues(t, records, updates.Load())
	require.EqualValues(t, records, tails.Load())
	require.Equal(t, 2*7, src.reads)
	require.EqualValues(t, 0, r.last().InputRows)
}

// twoOperators is a job whose second operator can be told to fail.
func twoOperators(fail *atomic.Bool) dstream.Job {
	return func(c ssc) error {
		in := ones(c, [][]string{{"a", "b", "c", "d"}, {"a", "b", "c", "d"}})
		one := dstream.MapWithState(in, dstream.Function(count).Named("one"))
		two := dstream.MapWithState(in, dstream.FunctionErr(
			func(_ time.Time, k string, v dstream.Option[int], s *dstream.State[int]) (int, bool, error) {
				if k == "d" && fail.Load() {
					return 0, false, errors.New("no d")
				}
				return count(k, v, s), true, nil
			}).Named("two").NumPartitions(4))
		dstream.Print(one, 1)
		dstream.Print(two, 1)
		return nil
	}
}

var all1 = map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}

// R2, R4: an operator that fails gives the whole epoch up, with the operators
// and partitions that had succeeded; N-1 is the newest readable state.
func TestFailedEpochLeavesNothing(t *testing.T) {
	var fail atomic.Bool
	r := newRig(t, time.Second, twoOperators(&fail)).start().tick(1)
	fail.Store(true)
	require.Error(t, r.tryTick())
	err := r.end()
	var b *dstream.BatchError
	require.ErrorAs(t, err, &b)
	require.EqualValues(t, 2, b.Batch.Epoch)
	require.Equal(t, "compute", b.Phase)
	var rec *rdd.RecordError
	require.ErrorAs(t, err, &rec)
	require.Equal(t, "two", rec.Operator)
	require.Equal(t, "d", rec.Key)
	require.Equal(t, "in", rec.Stream)
	require.Equal(t, "1", rec.Partition)
	require.EqualValues(t, 3, rec.Offset)
	require.ErrorContains(t, err, "no d")
	require.EqualValues(t, 1, r.h.Engine().Epoch())
	require.Equal(t, all1, stateOf[string, int](r, "one"))
	require.Equal(t, all1, stateOf[string, int](r, "two"))
}

// R4: an output that fails for good takes the sealed version back.
func TestFailedOutputTakesStateBack(t *testing.T) {
	var fail atomic.Bool
	var failed []string
	boom := errors.New("disk full")
	r := newRig(t, time.Second, twoOperators(&fail), dstream.WithTaskRetries(1),
		dstream.WithListener(dstream.Listener{
			OutputFailed: func(b dstream.Batch, name string, err error) {
				failed = append(failed, fmt.Sprintf("%d %s %v", b.Epoch, name, err))
			},
			BatchFailed: func(b dstream.Batch, err error) { failed = append(failed, fmt.Sprintf("%d failed", b.Epoch)) },
		}))
	r.fail = func(c harness.OutputCall) error {
		if c.Name == "two" && c.Epoch == 2 {
			return boom
		}
		return nil
	}
	r.start().tick(1)
	require.Error(t, r.tryTick())
	err := r.end()
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, `epoch 2`)
	require.ErrorContains(t, err, `output "two"`)
	require.Equal(t, []string{"2 two disk full", "2 two disk full", "2 failed"}, failed)
	require.Equal(t, all1, stateOf[string, int](r, "one"))
}

// R3: a failed output runs again over what was kept: no function runs twice.
func TestRetriedOutputComputesNothing(t *testing.T) {
	var updates, tails atomic.Int64
	fails := 2
	var seen []int64
	r := newRig(t, time.Second, func(c ssc) error {
		s := dstream.MapWithState(ones(c, inputA), dstream.Function(func(k string, v dstream.Option[int], st *dstream.State[int]) int {
			updates.Add(1)
			return count(k, v, st)
		}))
		dstream.ForeachRDD(dstream.Map(s, func(i int) int { tails.Add(1); return i }),
			func(ctx context.Context, b dstream.Batch, r *dstream.RDD[int]) error {
				n, err := rdd.Count(ctx, r)
				if err != nil {
					return err
				}
				if b.Epoch == 4 && fails > 0 {
					fails--
					return errors.New("try again")
				}
				seen = append(seen, n)
				return nil
			})
		return nil
	}, dstream.WithTaskRetries(2)).start().tick(7)
	require.EqualValues(t, 9, updates.Load())
	require.EqualValues(t, 9, tails.Load())
	require.Equal(t, []int64{0, 1, 2, 3, 2, 1, 0}, seen)
	require.Zero(t, fails)
	_ = r
}

// R5: an RDD given to ForeachRDD is valid until the function returns, longer
// only by Retain.
func TestRDDIsPinned(t *testing.T) {
	var views []*dstream.RDD[pair]
	var derived *dstream.RDD[int]
	r := newRig(t, time.Second, func(c ssc) error {
		s := dstream.MapWithState(ones(c, inputA), dstream.Function(count))
		dstream.ForeachRDD(s.StateSnapshots(), func(_ context.Context, b dstream.Batch, r *dstream.RDD[pair]) error {
			if b.Epoch == 3 {
				if err := r.Retain(); err != nil {
					return err
				}
				derived = rdd.Map(r, func(p pair) int { return p.Value })
			}
			views = append(views, r)
			return nil
		})
		return nil
	}).start().tick(7)
	_ = r
	ctx := context.Background()
	for i, v := range views {
		got, err := rdd.Collect(ctx, v)
		if i == 2 { // epoch 3, retained
			require.NoError(t, err)
			require.ElementsMatch(t, []pair{{Key: "a", Value: 2}, {Key: "b", Value: 1}}, got)
			continue
		}
		require.ErrorIs(t, err, rdd.ErrReleased)
		require.ErrorIs(t, v.Retain(), rdd.ErrReleased)
	}
	n, err := rdd.Count(ctx, derived)
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	views[2].Release()
	_, err = rdd.Count(ctx, derived)
	require.ErrorIs(t, err, rdd.ErrReleased)
}

// R6, F9: batches are remembered for the stream's duration, then forgotten.
func TestSlice(t *testing.T) {
	var in, long *dstream.DStream[string]
	r := newRig(t, time.Second, func(c ssc) error {
		in = dstream.From(c, "in", newScript(2, inputA...)).Cache()
		long = dstream.Map(in, func(s string) string { return s + s }).Remember(4 * time.Second).Named("long")
		other := dstream.Map(long, func(s string) string { return s })
		dstream.Print(dstream.Map(other, func(s string) string { return s }), 1)
		return nil
	}, dstream.WithRemember(2*time.Second))
	_, err := dstream.Slice(long, zero, zero)
	require.ErrorIs(t, err, dstream.ErrNotStarted)
	r.start().tick(6)
	at := func(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }
	got, err := dstream.Slice(long, at(3).Add(300*time.Millisecond), at(20))
	require.NoError(t, err)
	var texts []string
	for _, b := range got {
		rows, err := rdd.Collect(context.Background(), b.RDD)
		require.NoError(t, err)
		texts = append(texts, fmt.Sprint(b.Time.Sub(zero), rows))
		b.RDD.Release()
	}
	require.Equal(t, []string{"3s [aa bb]", "4s [aa bb cc]", "5s [aa bb]", "6s [aa]"}, texts)

	_, err = dstream.Slice(long, at(2), at(6))
	require.ErrorIs(t, err, dstream.ErrForgotten)
	require.ErrorContains(t, err, `stream "long"`)
	require.ErrorContains(t, err, "remembers 4s")
	_, err = dstream.Slice(long, time.Time{}, at(6)) // centuries of ticks that never were
	require.ErrorIs(t, err, dstream.ErrForgotten)
	_, err = dstream.Slice(in, at(4), at(6))
	require.ErrorContains(t, err, "remembers 2s")
	got, err = dstream.Slice(in, at(5), at(6))
	require.NoError(t, err)
	require.Len(t, got, 2)
	_, err = dstream.Slice(dstream.Stream[string](nil), at(5), at(6))
	require.Error(t, err)
	require.NoError(t, r.ssc.Stop(context.Background()))
	_, err = dstream.Slice(in, at(5), at(6)) // not an answer without batches
	require.ErrorIs(t, err, dstream.ErrStopped)
}

func TestSliceOfWhatIsNotKept(t *testing.T) {
	var mid *dstream.DStream[string]
	newRig(t, time.Second, func(c ssc) error {
		mid = dstream.Map(dstream.From(c, "in", newScript(2, inputA...)), func(s string) string { return s })
		dstream.Print(dstream.Map(mid, func(s string) string { return s }), 1)
		return nil
	}).start().tick(1)
	_, err := dstream.Slice(mid, zero, zero)
	require.ErrorContains(t, err, "call Cache or Remember")
}

// R8: a slow reader of the snapshots of N while N+1 and N+2 run (under -race).
func TestSlowReaderOfOldSnapshots(t *testing.T) {
	const keys = 2000
	var batches [][]string
	for range 3 {
		var b []string
		for i := range keys {
			b = append(b, fmt.Sprint("k", i))
		}
		batches = append(batches, b)
	}
	begun, go1, go2 := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	var sum int
	var slow error
	r := newRig(t, time.Second, func(c ssc) error {
		s := dstream.MapWithState(ones(c, batches), dstream.Function(count).Named("count"))
		dstream.ForeachRDD(s.StateSnapshots(), func(_ context.Context, b dstream.Batch, r *dstream.RDD[pair]) error {
			if b.Epoch != 1 {
				return nil
			}
			if err := r.Retain(); err != nil {
				return err
			}
			wg.Go(func() {
				defer r.Release()
				rows := 0
				_, slow = rdd.Collect(context.Background(), rdd.Map(r.WithExecutor(rdd.Local(1, nil)), func(p pair) int {
					switch rows++; rows {
					case 10:
						close(begun)
						<-go1 // batch 2 is committed
					case 1000:
						<-go2 // batch 3 is committed
					}
					sum += p.Value
					return 0
				}))
			})
			return nil
		})
		return nil
	}).start().tick(1)
	<-begun
	r.tick(1)
	close(go1)
	r.tick(1)
	close(go2)
	wg.Wait()
	require.NoError(t, slow)
	require.Equal(t, keys, sum) // every key still had 1
	require.Equal(t, 3, stateOf[string, int](r, "count")["k7"])
}

// R8: a function that reads an old version of its own operator does not block.
func TestFunctionReadsOldVersionOfItself(t *testing.T) {
	var old atomic.Pointer[dstream.RDD[pair]]
	newRig(t, time.Second, func(c ssc) error {
		s := dstream.MapWithState(ones(c, inputA), dstream.FunctionErr(
			func(_ time.Time, k string, v dstream.Option[int], st *dstream.State[int]) (int, bool, error) {
				if r := old.Load(); r != nil {
					rows, err := rdd.Collect(context.Background(), r)
					if err != nil {
						return 0, false, err
					}
					if len(rows) != 1 || rows[0].Value != 1 {
						return 0, false, fmt.Errorf("old version has %v", rows)
					}
				}
				return count(k, v, st), true, nil
			}))
		dstream.ForeachRDD(s.StateSnapshots(), func(_ context.Context, b dstream.Batch, r *dstream.RDD[pair]) error {
			if b.Epoch == 2 {
				old.Store(r)
				return r.Retain()
			}
			return nil
		})
		return nil
	}).start().tick(7)
	old.Load().Release()
}

// R9 and the tick rules: batches never overlap; two ticks wait while a batch
// runs, later ones are skipped and counted.
func TestBatchesNeverOverlap(t *testing.T) {
	hold, holding := make(chan struct{}), make(chan struct{})
	var running atomic.Int64
	var events []string
	r := newRig(t, time.Second, func(c ssc) error {
		dstream.ForeachRDD(dstream.MapWithState(ones(c, inputA), dstream.Function(count)),
			func(_ context.Context, b dstream.Batch, _ *dstream.RDD[int]) error {
				if running.Add(1) != 1 {
					return errors.New("two batches at once")
				}
				defer running.Add(-1)
				if b.Epoch == 1 {
					close(holding)
					<-hold
				}
				return nil
			})
		return nil
	}, dstream.WithListener(dstream.Listener{
		BatchStarted:   func(b dstream.Batch) { events = append(events, fmt.Sprint("start ", b.Epoch, " ", b.Time.Sub(zero))) },
		BatchCompleted: func(p dstream.Progress) { events = append(events, fmt.Sprint("end ", p.Batch.Epoch)) },
	})).start()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r.clock.Advance(time.Second)
	<-holding
	for range 5 {
		require.NoError(t, r.clock.BlockUntil(ctx, 1))
		r.clock.Advance(time.Second)
	}
	require.NoError(t, r.clock.BlockUntil(ctx, 1))
	close(hold)
	require.NoError(t, r.h.WaitTick(ctx, r.clock.Now()))
	r.tick(1)
	require.Equal(t, []string{"start 1 1s", "end 1", "start 2 2s", "end 2", "start 3 3s", "end 3", "start 4 7s", "end 4"}, events)
	require.EqualValues(t, 3, r.last().SkippedTicks)
}

// hold retains the snapshots of every batch.
func hold(s *dstream.MapWithStateDStream[string, int, int], held *[]*dstream.RDD[pair]) {
	dstream.ForeachRDD(s.StateSnapshots(), func(_ context.Context, _ dstream.Batch, r *dstream.RDD[pair]) error {
		*held = append(*held, r)
		return r.Retain()
	})
}

func sumOf(t *testing.T, r *dstream.RDD[pair]) int {
	p, _, err := rdd.Reduce(context.Background(), r, func(a, b pair) pair { return pair{Value: a.Value + b.Value} })
	require.NoError(t, err)
	return p.Value
}
