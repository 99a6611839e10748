package dstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

// story keeps what listeners were told, and what a probe would have seen then.
type story struct {
	mu    sync.Mutex
	lines []string
	kit   *milltest.Kit
}

func (s *story) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *story) listener() dstream.ContextOption {
	return dstream.WithListener(dstream.Listener{
		Started: func(time.Time) { s.add("started") },
		Ready: func(r dstream.Readiness) {
			s.add("ready: term %d, epoch %d, again %v: %v", r.Term, r.Epoch, r.Again, s.kit.Context().ReadyErr())
		},
		NotReady: func(err error) {
			s.add("not ready: %v: %v", err, errors.Is(s.kit.Context().ReadyErr(), dstream.ErrNotReady))
		},
		BatchCompleted: func(p dstream.Progress) { s.add("batch %d, restarts %d", p.Batch.Epoch, p.Checkpoint.Restarts) },
	})
}

func (s *story) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines
}

// Report 19, D7: a run that begins anew in place is not ready, and ready again, by
// the same method and event as at the start.
func TestReadinessOfARunThatBeginsAnew(t *testing.T) {
	objects := vfs.NewObjects()
	var f vfs.Faults
	a, inA := onStore(t, vfs.WithStoreFaults(objects, &f))
	inA.Batch("a", "b").Batch("a", "c")
	a.Tick(1)
	z := f.Freeze(vfs.Rule{Path: "offsets/2", Kinds: vfs.KindPut})
	a.Advance(1)
	<-z.Reached()

	var s story
	b, inB := onStore(t, objects, s.listener())
	s.kit = b
	inB.Batch("a", "b").Batch("a", "c").Batch("a")
	b.StartAt(a.Now())
	require.NoError(t, b.Start())
	z.Thaw()
	a.Await()
	require.ErrorIs(t, a.Err(), checkpoint.ErrNotOwner)
	b.Tick(2)
	require.NoError(t, b.Err())
	require.Equal(t, []string{
		"started",
		"ready: term 2, epoch 1, again false: <nil>",
		"not ready: checkpoint: epoch 2: an older run has decided the epoch: open the checkpoint again: true",
		"ready: term 3, epoch 1, again true: <nil>",
		"batch 2, restarts 1",
		"batch 3, restarts 1",
	}, s.told())
}

// The same for a change of the layout between two batches.
func TestReadinessOfAChange(t *testing.T) {
	kit, in := durableKit(t, counts(counter().NumPartitions(2)))
	in.Batch("a", "b").Batch("a")
	kit.Tick(1)
	gate := kit.BlockOutput("out")
	kit.Advance(1)
	gate.Entered()
	kit.Crash() // the epoch stays planned
	gate.Release()
	var s story
	kit.Job(counts(counter().NumPartitions(3)), dstream.WithRescale(), s.listener())
	s.kit = kit
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 2, "b": 1}, stateNow(kit))
	kit.Await()
	told := strings.Join(s.told(), "\n")
	require.Contains(t, told, "batch 2, restarts 0\nnot ready: the layout of the state is changed, as the program asks: true\nready: term 2, epoch 3, again true: <nil>")
}

// A job in memory is ready when it has started.
func TestReadinessWithoutACheckpoint(t *testing.T) {
	var s story
	kit := milltest.New(t, time.Second, counts(counter()), s.listener())
	s.kit = kit
	kit.Tick(1)
	require.Equal(t, []string{"started", "ready: term 0, epoch 0, again false: <nil>", "batch 1, restarts 0"}, s.told())
}

// Report 19: while the store gives nothing, a load is told of at least every five
// seconds.
func TestReport19ASlowLoadIsNotSilent(t *testing.T) {
	objects := vfs.NewObjects()
	src := newScript(1, []string{"a", "b", "c"})
	over := func(c ssc) error {
		dstream.Print(dstream.MapWithState(dstream.MapPair(dstream.From(c, "words", src), func(w string) (string, int) { return w, 1 }),
			counter().NumPartitions(1)), 10, dstream.Name("out"))
		return nil
	}
	first := newRig(t, time.Second, over, dstream.WithCheckpointStore(objects)).start().tick(1)
	require.NoError(t, first.ssc.Stop(t.Context()))

	var f vfs.Faults
	z := f.Freeze(vfs.Rule{Path: "*.delta", Kinds: vfs.KindReadAt})
	events := make(chan dstream.StateLoading, 100)
	second := newRig(t, time.Second, over, dstream.WithCheckpointStore(vfs.WithStoreFaults(objects, &f)),
		dstream.WithListener(dstream.Listener{StateLoading: func(p dstream.StateLoading) { events <- p }}))
	second.clock.Set(first.clock.Now())
	started := make(chan error, 1)
	go func() { started <- second.ssc.Start() }()
	<-z.Reached()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 3 {
		require.NoError(t, second.clock.BlockUntil(ctx, 1))
		second.clock.Advance(5 * time.Second)
		select {
		case p := <-events:
			require.Equal(t, "counts", p.Operator)
			require.False(t, p.Done)
		case <-ctx.Done():
			t.Fatal("nothing is told of a load that does not get on")
		}
		require.ErrorContains(t, second.ssc.ReadyErr(), `"counts"`)
	}
	z.Thaw()
	require.NoError(t, <-started)
	require.NoError(t, second.ssc.Stop(t.Context()))
}
