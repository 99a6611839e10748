package dstream_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/source/receiver"
	"github.com/statemill/statemill/vfs"
)

// asked is a scripted source that says what it is asked.
type asked struct {
	*script[string]
	log *log
}

func (s asked) Plan(ctx context.Context, l source.Limits) (source.Plan, error) {
	s.log.add("plan %d", l.Epoch)
	return s.script.Plan(ctx, l)
}

func (s asked) Committed(ctx context.Context, p source.Plan) error {
	s.log.add("source is told")
	return s.script.Committed(ctx, p)
}

func (s asked) Close() error {
	s.log.add("source closes")
	return s.script.Close()
}

// newestCommit is the epoch of a root's newest commit, 0 if there is none.
func newestCommit(t *testing.T, store vfs.Store) uint64 {
	t.Helper()
	c, err := checkpoint.OpenRoot(store).Newest(context.Background())
	require.NoError(t, err)
	if c == nil {
		return 0
	}
	return c.Epoch
}

// G2: what a graceful stop does, in its order: the running batch goes on to its outputs, one after
// the other, and its commit; ticks that wait get no batch (nothing has been read for them, so nothing
// is lost: what they would have read is there at the next start; of sources that cannot be read again
// see TestStopDrains); then the sources are told and
// closed, receivers stop, and the stop returns.
func TestGracefulStopOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there, release := make(chan struct{}), make(chan struct{})
		var l log
		store := vfs.NewObjects()
		r := newRig(t, time.Second, func(c ssc) error {
			in := dstream.From(c, "in", source.Source[string](asked{newScript(1, []string{"a"}, []string{"a"}, []string{"a"}, []string{"a"}), &l}))
			counts := dstream.MapWithState(dstream.MapPair(in, func(s string) (string, int) { return s, 1 }),
				dstream.Function(func(k string, v dstream.Option[int], s *dstream.State[int]) int {
					n := count(k, v, s)
					if n == 2 {
						close(there)
						<-release
					}
					return n
				}).Named("count").NumPartitions(1))
			for _, name := range []string{"first", "second"} {
				dstream.ForeachRDD(counts, func(context.Context, dstream.Batch, *dstream.RDD[int]) error {
					l.add("%s after commit %d", name, newestCommit(t, store))
					return nil
				}, dstream.Name(name))
			}
			words := receiver.Receiver[string](receiver.Func[string](func(ctx context.Context, _ receiver.Store[string]) error {
				<-ctx.Done()
				return nil
			}))
			dstream.Print(dstream.ReceiverStream(c, "received", t.TempDir(), nil, words), 1, dstream.Name("third"))
			return nil
		}, dstream.WithCheckpointStore(store), dstream.WithListener(dstream.Listener{
			TickSkipped:     func(time.Time) { l.add("tick skipped") },
			BatchCompleted:  func(p dstream.Progress) { l.add("batch %d is complete", p.Batch.Epoch) },
			ReceiverStopped: func(s string, err error) { l.add("%s stops: %v", s, err) },
		})).start().tick(1)
		r.clock.Advance(time.Second)
		<-there
		before := len(l.all())
		r.clock.Advance(time.Second) // a tick that waits
		synctest.Wait()              // the driver has seen it
		result := make(chan error, 2)
		for _, wait := range []func() error{func() error { return r.ssc.Stop(context.Background()) }, r.end} { // both wait for the same end
			go func() { result <- wait() }()
		}
		synctest.Wait()
		close(release)
		require.NoError(t, <-result)
		require.NoError(t, <-result)
		require.NoError(t, r.end())
		require.Equal(t, []string{
			"first after commit 1", "second after commit 1", "source is told", "batch 2 is complete",
			"source closes", "received stops: <nil>",
		}, l.all()[before:])
		require.EqualValues(t, 2, newestCommit(t, store))
		require.NoError(t, r.ssc.Stop(context.Background()), "a stop of what has ended")
	})
}

// gated is a job that sums its input; the batch whose record is 3 waits in the place that is named until
// the gate opens.
func gated(place string, there, gate chan struct{}) dstream.Job {
	wait := func(at string, n int) {
		if at == place && n == 3 {
			there <- struct{}{}
			<-gate
		}
	}
	return func(c ssc) error {
		in := dstream.KeyBy(dstream.QueueNamed[int](c, "in", 1), func(int) string { return "sum" })
		sums := dstream.MapWithState(in, dstream.Function(func(_ string, v dstream.Option[int], s *dstream.State[int]) int {
			n, _ := v.Get()
			wait("state", n)
			s.Update(s.OrElse(0) + n)
			return s.Get()
		}).Named("sums").NumPartitions(1))
		dstream.Print(sums, 1, dstream.Name("out"))
		dstream.ForeachRDD(sums, func(_ context.Context, b dstream.Batch, _ *dstream.RDD[int]) error {
			wait("output", int(b.Epoch))
			return nil
		}, dstream.Name("slow"))
		return nil
	}
}

// G2: when the bound of a stop passes, it returns an error that names what was still running; what was
// committed is durable and the rest of the batch is not: the next run does it again as it was planned,
// and each record counts once. A hard stop (its context has ended) is the same without the wait.
func TestStopBeyondItsBoundIsDurable(t *testing.T) {
	for _, place := range []string{"state", "output"} {
		for _, hard := range []bool{false, true} {
			t.Run(fmt.Sprint(place, " hard ", hard), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					there, gate := make(chan struct{}, 1), make(chan struct{})
					kit := milltest.New(t, time.Second, gated(place, there, gate), dstream.WithStopTimeout(10*time.Second))
					kit.Checkpoint()
					milltest.Input[int](kit, "in").Batches([]int{1}, []int{2}, []int{3}, []int{4}, []int{5})
					kit.Tick(2)
					kit.Advance(1)
					<-there
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if hard {
						cancel()
					}
					result := make(chan error, 1)
					go func() { result <- kit.Context().Stop(ctx) }()
					synctest.Wait()
					if !hard {
						kit.AdvanceTime(9 * time.Second)
						synctest.Wait()
						require.Empty(t, result, "within the bound")
						kit.AdvanceTime(time.Second)
						synctest.Wait()
					}
					kit.AdvanceTime(time.Second) // the grace for functions that come back when told
					err := <-result
					require.ErrorIs(t, err, dstream.ErrStopTimeout)
					var late *dstream.StopTimeoutError
					require.ErrorAs(t, err, &late)
					require.EqualValues(t, 3, late.Batch.Epoch)
					require.False(t, late.Committed)
					require.Equal(t, []string{map[string]string{"state": "sums partition 0", "output": "output slow"}[place]}, late.Tasks)
					close(gate)
					synctest.Wait() // the run has ended
					require.ErrorIs(t, kit.Err(), dstream.ErrStopTimeout)
					require.EqualValues(t, 2, newestCommit(t, kit.CheckpointStore("reader")))
					kit.Restart()
					kit.Tick(2)
					require.NoError(t, kit.Err())
					require.Equal(t, map[string]int{"sum": 15}, milltest.State[string, int](kit, "sums"))
					require.NoError(t, kit.Stop())
				})
			})
		}
	}
}

// G2: the run cannot be waited for from within, wherever the user's function stands; it goes on. From a
// goroutine of its own a function may stop it.
func TestStopFromWithin(t *testing.T) {
	var c ssc
	var mu sync.Mutex
	errs := map[string]error{}
	stop := func(place string) {
		err := c.Stop(context.Background())
		mu.Lock()
		defer mu.Unlock()
		errs[place] = err
	}
	stopped := make(chan error, 1)
	r := newRig(t, time.Second, func(ctx ssc) error {
		c = ctx
		in := dstream.Filter(dstream.From(c, "in", newScript(1, []int{1}, []int{2}, []int{3})), func(int) bool { stop("filter"); return true })
		pairs := dstream.KeyBy(in, func(int) int { stop("key"); return 0 })
		counts := dstream.MapWithState(pairs, dstream.Function(func(int, dstream.Option[int], *dstream.State[int]) int { stop("state"); return 0 }))
		updated := dstream.UpdateStateByKey(pairs, func(v []int, s dstream.Option[int]) dstream.Option[int] { stop("update"); return s })
		window := dstream.ReduceByKeyAndWindowInverse(pairs, func(a, b int) int { stop("add"); return a + b }, subtract, func(int, int) bool { stop("keep"); return true }, 2*time.Second, time.Second)
		dstream.Print(dstream.Transform(in, func(_ time.Time, r *dstream.RDD[int]) (*dstream.RDD[int], error) { stop("transform"); return r, nil }), 1)
		dstream.Print(counts, 1)
		dstream.Print(updated, 1)
		dstream.Print(window, 1)
		dstream.Foreach(in, func(_ context.Context, b dstream.Batch, _ int) error {
			stop("foreach")
			if b.Epoch == 2 {
				go func() { stopped <- c.Stop(context.Background()) }()
			}
			return nil
		})
		return nil
	}, dstream.WithListener(dstream.Listener{
		BatchStarted:   func(dstream.Batch) { stop("listener of the start") },
		BatchCompleted: func(dstream.Progress) { stop("listener of the end") },
		OutputStarted:  func(dstream.Batch, string) { stop("listener of an output") },
	})).start().tick(1)
	r.clock.Advance(time.Second)
	require.NoError(t, <-stopped)
	require.Len(t, errs, 11)
	for place, err := range errs {
		require.ErrorIs(t, err, dstream.ErrInside, place)
	}
	require.EqualValues(t, 2, r.h.Engine().Epoch())
}

// G2: with backpressure and a backlog a stop waits for the running batch alone, which has what its rate
// said; the rest of the backlog is read by the next run, from there on.
func TestStopUnderBackpressure(t *testing.T) {
	var all []int
	for i := range 1000 {
		all = append(all, i)
	}
	var got []int
	kit := milltest.New(t, time.Second, func(c ssc) error {
		dstream.Foreach(dstream.QueueNamed(c, "in", 1, all), func(_ context.Context, _ dstream.Batch, i int) error {
			got = append(got, i)
			return nil
		})
		return nil
	}, dstream.WithBackpressure(dstream.MinRate(100)), dstream.WithInitialRate(100))
	kit.Checkpoint()
	kit.Tick(3)
	require.NoError(t, kit.Stop())
	require.Less(t, len(got), 1000)
	first := len(got)
	kit.Restart()
	kit.Tick(1)
	require.Greater(t, len(got), first)
	for range 20 {
		kit.Tick(1)
	}
	require.NoError(t, kit.Err())
	require.Equal(t, all, got)
}

// G2: what a receiver has had acknowledged while the run stops is in its log, and in the next run's first
// batch, once.
func TestStopLosesNoReceivedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		there, release := make(chan struct{}), make(chan struct{})
		var got []string
		job := func(stored chan error, gate bool) dstream.Job {
			return func(c ssc) error {
				in := dstream.ReceiverStream(c, "words", dir, nil, receiver.Receiver[string](receiver.Func[string](func(ctx context.Context, store receiver.Store[string]) error {
					if !gate {
						<-ctx.Done()
						return nil
					}
					stored <- store(ctx, "before")
					<-there
					stored <- store(ctx, "meanwhile")
					<-ctx.Done()
					return nil
				})))
				dstream.Foreach(in, func(_ context.Context, _ dstream.Batch, w string) error {
					got = append(got, w)
					if gate && w == "before" {
						close(there)
						<-release
					}
					return nil
				})
				return nil
			}
		}
		store := vfs.NewObjects()
		stored := make(chan error, 1)
		r := newRig(t, time.Second, job(stored, true), dstream.WithCheckpointStore(store)).start()
		require.NoError(t, <-stored)
		r.clock.Advance(time.Second)
		<-there
		result := make(chan error, 1)
		go func() { result <- r.ssc.Stop(context.Background()) }()
		synctest.Wait() // the stop has begun
		require.NoError(t, <-stored)
		close(release)
		require.NoError(t, <-result)
		again := newRig(t, time.Second, job(nil, false), dstream.WithCheckpointStore(store))
		again.clock.Set(r.clock.Now())
		again.start().tick(1)
		require.NoError(t, again.ssc.Stop(context.Background()))
		require.Equal(t, []string{"before", "meanwhile"}, got)
	})
}

// G2: sources are closed in a stop though the run has failed, and their errors come with its own.
func TestStopAfterAFailure(t *testing.T) {
	var l log
	mine := errors.New("mine")
	src := asked{newScript(1, []string{"a"}), &l}
	r := newRig(t, time.Second, func(c ssc) error {
		dstream.Foreach(dstream.From(c, "in", source.Source[string](src)), func(context.Context, dstream.Batch, string) error { return mine })
		return nil
	}).start()
	require.ErrorIs(t, r.tryTick(), mine)
	require.ErrorIs(t, r.ssc.Stop(context.Background()), mine, "a stop tells how the run ended")
	require.True(t, src.closed)
	require.Equal(t, []string{"plan 1", "source closes"}, l.all())
}
