package dstream_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// P3, report 14: a run that has created commits/N and then finds a newer owner says that
// the epoch is committed if the newer run builds on it, and not if that has done it
// itself.
func TestFateOfACommitBeforeATakeover(t *testing.T) {
	for _, committed := range []bool{true, false} {
		t.Run(fmt.Sprint(committed), func(t *testing.T) {
			objects := vfs.NewObjects()
			var f vfs.Faults
			a, inA := onStore(t, vfs.WithStoreFaults(objects, &f))
			inA.Batch("a").Batch("a")
			a.Tick(1)
			z := f.Freeze(vfs.Rule{Path: "commits/2", Kinds: vfs.KindPut})
			a.Advance(1)
			<-z.Reached()
			check := f.Freeze(vfs.Rule{Path: "owner/2", Kinds: vfs.KindStat})
			if committed {
				z.Thaw()
				<-check.Reached()
			}
			b, inB := onStore(t, objects)
			inB.Batch("a").Batch("a").Batch("a")
			b.StartAt(a.Now())
			b.Tick(1)
			require.NoError(t, b.Err())
			require.Equal(t, map[string]int{"a": 3}, stateNow(b))
			z.Thaw()
			check.Thaw()
			a.Await()
			err := a.Err()
			require.ErrorIs(t, err, checkpoint.ErrNotOwner)
			var batch *dstream.BatchError
			require.True(t, errors.As(err, &batch))
			require.Equal(t, committed, batch.Committed)
			require.False(t, batch.Unknown)
			want := map[string]int{"a": 1}
			if committed {
				require.ErrorContains(t, err, "(the epoch is committed)")
				want["a"] = 2
			}
			require.Equal(t, want, stateNow2(t, a))
		})
	}
}

// P4: what a commit that failed for good has become is told as far as it can be known,
// and the next run counts the epoch once.
func TestFateOfAFailedCommit(t *testing.T) {
	gone := errors.New("gone")
	for _, c := range []struct {
		name               string
		rules              []vfs.Rule
		after              bool // the calls are made, and their answers lost
		locks              bool
		committed, unknown bool
	}{
		{name: "no answer", rules: []vfs.Rule{{Path: "commits/2", Kinds: vfs.KindPut | vfs.KindGet, Forever: true}}, after: true, unknown: true},
		{name: "no object", rules: []vfs.Rule{{Path: "commits/2", Kinds: vfs.KindPut, Forever: true}}, unknown: true},
		{name: "no file", rules: []vfs.Rule{{Path: "commits/2", Kinds: vfs.KindPut, Forever: true}}, locks: true},
		// What fails is the look for a newer run: the epoch counts all the same.
		{name: "no owner check", rules: []vfs.Rule{{Path: "owner/2", Kinds: vfs.KindStat, K: 2, Forever: true}}, committed: true},
		{name: "no list", rules: []vfs.Rule{
			{Path: "owner/2", Kinds: vfs.KindStat, K: 2, Forever: true}, {Path: "commits/", Kinds: vfs.KindList, Forever: true},
		}, unknown: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var shared vfs.Store = vfs.NewObjects()
			if c.locks {
				dir, err := vfs.NewDir(vfs.NewMem(), "ckpt", "a")
				require.NoError(t, err)
				shared = dir
			}
			var f vfs.Faults
			a, inA := onStore(t, vfs.WithStoreFaults(shared, &f))
			inA.Batch("a").Batch("a")
			a.Tick(1)
			for _, r := range c.rules {
				r.Err, r.After = gone, c.after
				f.Fail(r)
			}
			a.Tick(1)
			err := a.Err()
			require.ErrorIs(t, err, gone)
			var batch *dstream.BatchError
			require.True(t, errors.As(err, &batch))
			require.Equal(t, c.committed, batch.Committed)
			require.Equal(t, c.unknown, batch.Unknown)
			want := map[string]int{"a": 1}
			switch {
			case c.committed:
				require.ErrorContains(t, err, "(the epoch is committed)")
				want["a"] = 2
			case c.unknown:
				require.ErrorContains(t, err, "(whether the epoch is committed is not known: the next run finds out, and counts it once)")
			}
			require.Equal(t, want, stateNow2(t, a))
			b, inB := onStore(t, shared)
			inB.Batch("a").Batch("a").Batch("a")
			b.StartAt(a.Now())
			b.Tick(1)
			require.NoError(t, b.Err())
			require.Equal(t, map[string]int{"a": 3}, stateNow(b))
		})
	}
}

// An abort during the commit, of which nobody can tell then what became of it.
func TestAbortDuringCommitOfUnknownFate(t *testing.T) {
	var f vfs.Faults
	kit, in := durableKit(t, counts(counter().NumPartitions(2)))
	kit.WrapCheckpoint(func(fs vfs.FS) vfs.FS { return vfs.WithFaults(fs, &f) })
	in.Batch("a").Batch("a")
	kit.Tick(1)
	f.Fail(vfs.Rule{Path: "commits/2", Kinds: vfs.KindOpen, Forever: true})
	f.Do(vfs.Rule{Path: "commits/2", Kinds: vfs.KindLink}, func(vfs.Call) {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		go func() { _ = kit.Context().Stop(gone) }()
		for !dstream.Aborted(kit.Context()) {
			runtime.Gosched()
		}
	})
	kit.Advance(1)
	kit.Await()
	var late *dstream.StopTimeoutError
	require.True(t, errors.As(kit.Err(), &late), "%v", kit.Err())
	require.True(t, late.Committing)
	require.False(t, late.Committed)
	require.ErrorContains(t, late, "whether it counts, the next start says")
	f.Clear()
	kit.Restart()
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 2}, stateNow(kit))
}

// slowClose is a source that does not close for a while.
type slowClose struct {
	*script[string]
	there, gate chan struct{}
}

func (s *slowClose) Close() error {
	close(s.there)
	<-s.gate
	return s.script.Close()
}

// Report 37: a stop at once of a run without a batch does not tell of one that did not
// end, and if the run ends at once there is no error.
func TestStopOfAnIdleRun(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	kit := milltest.New(t, time.Second, counts(counter()))
	kit.Tick(2)
	require.NoError(t, kit.Context().Stop(gone))

	objects := vfs.NewObjects()
	over := func(src source.Source[string]) *rig {
		return newRig(t, time.Second, func(c ssc) error {
			dstream.Print(dstream.From(c, "in", src), 1)
			return nil
		}, dstream.WithCheckpointStore(objects))
	}
	require.NoError(t, over(newScript(1, []string{"a"})).start().tick(1).ssc.Stop(t.Context()))

	src := &slowClose{newScript(1, []string{"a"}), make(chan struct{}), make(chan struct{})}
	r := over(src) // which goes on, and has no batch of its own
	r.clock.Advance(time.Second)
	r.start()
	var once sync.Once
	release := func() { once.Do(func() { close(src.gate) }) }
	t.Cleanup(release) // before the rig's
	result := make(chan error, 1)
	go func() { result <- r.ssc.Stop(gone) }()
	<-src.there
	ctx, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	var err error
	for err == nil && ctx.Err() == nil { // the grace: its timer comes when it comes
		select {
		case err = <-result:
		default:
			r.clock.Advance(time.Second)
			runtime.Gosched()
		}
	}
	require.ErrorIs(t, err, dstream.ErrStopTimeout)
	var late *dstream.StopTimeoutError
	require.True(t, errors.As(err, &late))
	require.True(t, late.Idle)
	require.EqualError(t, err, `dstream: the run did not end within the stop timeout: no batch was running, epoch 1 is the last committed one; still in user code: close of source in`)
	release()
	<-dstream.Done(r.ssc)
}
