package dstream_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// An epoch that the only sink has, and that is committed without computing it, counts
// as it did when it was computed. What the sink's own function adds counts never: it
// runs as often as writing needs it.
func TestCounterOfAnAdoptedEpoch(t *testing.T) {
	objects, out := vfs.NewObjects(), vfs.NewObjects()
	var mu sync.Mutex
	var adopted []string
	run := func(store vfs.Store) (*rig, *dstream.Counter) {
		var n *dstream.Counter
		r := newRig(t, time.Second, func(c ssc) error {
			n = c.Counter("seen")
			encoded := c.Counter("encoded")
			words := dstream.Map(dstream.From(c, "in", newScript(1, []string{"a"}, []string{"b", "c"}, []string{"d"})), func(w string) string {
				n.Add(1)
				return w
			})
			dstream.Output(words, "out", sink.Lines(sink.NewFiles("files", out), func(dst []byte, w string) ([]byte, error) {
				encoded.Add(1)
				return append(dst, w...), nil
			}))
			return nil
		}, dstream.WithCheckpointStore(store), dstream.WithListener(dstream.Listener{Notice: func(n dstream.Notice) {
			mu.Lock()
			defer mu.Unlock()
			if n.Kind == checkpoint.NoticeAdopted {
				adopted = append(adopted, n.Text)
			}
		}}))
		return r, n
	}
	var f vfs.Faults
	first, n := run(vfs.WithStoreFaults(objects, &f))
	first.start().tick(1)
	require.EqualValues(t, 1, n.Value())
	f.Fail(vfs.Rule{Path: "commits/2", Kinds: vfs.KindPut, Dead: true, Forever: true})
	require.Error(t, first.tryTick())
	require.Error(t, first.end())

	second, n := run(objects)
	second.clock.Set(first.clock.Now())
	second.start()
	require.Equal(t, []string{"epoch 2 was out already and is committed as it was written"}, adopted)
	require.EqualValues(t, 3, n.Value(), "epoch 2 has added two")
	second.tick(3) // the source gives all again; what was committed reaches no function
	require.EqualValues(t, 4, n.Value())
	require.Zero(t, second.ssc.Counter("encoded").Value())
	require.Equal(t, "encoded", second.last().Counters[0].Name)
}

// P8, report 11: where a program's own partitioner places keys, only that program
// knows. An epoch that is pending when it changes is refused, nothing is damaged, and
// the way out that the error names works.
func TestPendingEpochUnderAnotherFunction(t *testing.T) {
	by := func(n int) dstream.Job {
		return counts(counter().Partitioner(partitioner.Func("length", n, func(w string) int { return len(w) % n })))
	}
	kit, in := durableKit(t, by(2))
	in.Batch("a", "bb").Batch("a").Batch("bb").Batch("a")
	kit.Tick(1)
	gate := kit.BlockOutput("out")
	kit.Advance(1)
	gate.Entered()
	kit.Crash() // the epoch stays planned
	gate.Release()
	kit.Job(by(3), dstream.WithRescale())
	err := kit.Start()
	require.ErrorContains(t, err, `the checkpoint has 2 partitions, the program gives func "length"(3): start once with the partitioner of 2 partitions that the program had before, stop it after a batch, and then start this one`)
	require.ErrorContains(t, err, "_test.go:", "the operator's line")

	kit.Restart()
	kit.Job(by(2))
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 2, "bb": 2}, stateNow(kit))
	kit.Restart()
	kit.Job(by(3), dstream.WithRescale())
	kit.Tick(1)
	require.NoError(t, kit.Err())
	require.Equal(t, map[string]int{"a": 3, "bb": 2}, stateNow(kit))
}

// A checkpoint that can never be made is told at once: no clock is waited for.
func TestCheckpointBelowAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	f, err := vfs.Disk().Create(file)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, dir := range []string{file, filepath.Join(file, "checkpoint")} {
		ssc := dstream.New(time.Second, dstream.WithClock(clock.NewManual(zero)), dstream.WithCheckpoint(dir), dstream.WithOutput(discard{}))
		dstream.Print(dstream.QueueNamed[int](ssc, "in", 1), 1)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("it was tried again"))
		require.ErrorContains(t, ssc.Run(ctx), "not a directory", dir)
		require.NoError(t, ctx.Err())
		cancel()
	}
}
