package reports

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
)

const holderDir = "STATEMILL_TEST_HOLDER_DIR"

// TestHolder is the other process of the next test: it holds a checkpoint until its
// standard input ends.
func TestHolder(t *testing.T) {
	dir := os.Getenv(holderDir)
	if dir == "" {
		t.Skip("it is the other process of TestTwoProcessesOnOneCheckpoint")
	}
	ssc := dstream.NewStreamingContext(time.Hour, dstream.WithCheckpoint(dir), dstream.WithOutput(discard{}))
	require.NoError(t, summing(func(int) {})(ssc))
	require.NoError(t, ssc.Start())
	fmt.Println("holding")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	require.NoError(t, ssc.Stop(context.Background()))
}

// report 14: a second process on the same directory is told who holds it and since
// when, and writes nothing; when the first was killed, the next start goes on at once.
func TestTwoProcessesOnOneCheckpoint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	other := exec.CommandContext(t.Context(), self, "-test.run=^TestHolder$")
	other.Env = append(os.Environ(), holderDir+"="+dir)
	in, err := other.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "holding\n", line)

	start := func() (*dstream.StreamingContext, error) {
		ssc := dstream.NewStreamingContext(time.Hour, dstream.WithCheckpoint(dir), dstream.WithOutput(discard{}))
		require.NoError(t, summing(func(int) {})(ssc))
		return ssc, ssc.Start()
	}
	_, err = start()
	var owned *checkpoint.OwnedError
	require.ErrorAs(t, err, &owned)
	assert.Equal(t, other.Process.Pid, owned.PID)
	assert.ErrorContains(t, err, strconv.Itoa(other.Process.Pid))
	assert.WithinDuration(t, time.Now(), time.Unix(0, owned.Since), time.Hour)
	_, err = os.Stat(path.Join(dir, "owner", "2"))
	require.ErrorIs(t, err, os.ErrNotExist, "the refused start took no term")

	require.NoError(t, other.Process.Kill())
	_ = other.Wait()
	ssc, err := start()
	require.NoError(t, err)
	require.NoError(t, ssc.Stop(context.Background()))
}

// report 16: many partitions and many batches: few files, no list calls, bounded chains.
func TestFewFilesAndNoLists(t *testing.T) {
	t.Parallel()
	const parts, every, keep, batches = 64, 10, 2, 300
	objects := vfs.NewObjects()
	log := vfs.NewLog("/", vfs.KindList)
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		in := dstream.KeyBy(dstream.QueueNamed[int](ssc, "in", 1), func(n int) int { return n })
		dstream.Print(dstream.MapWithState(in, dstream.Function(func(_ int, v dstream.Option[int], s *dstream.State[int]) int {
			s.Update(s.OrElse(0) + 1)
			return s.Get()
		}).Named("op").NumPartitions(parts)), 1, dstream.Name("out"))
		return nil
	}, dstream.WithCheckpointStore(vfs.WithStoreLog(objects, log), dstream.SnapshotEvery(every), dstream.SnapshotBySize(false), dstream.RetainSnapshots(keep)))
	in := milltest.Input[int](kit, "in")
	kit.DiscardOutput("out")
	keys := make([]int, 8*parts) // so that every partition changes in every batch
	for i := range keys {
		keys[i] = i
	}
	for n := range batches {
		in.Batch(keys...)
		kit.Tick(1)
		require.NoError(t, kit.Err())
		if n == 0 {
			log.Reset()
		}
		if n%9 != 8 {
			continue
		}
		files := map[string]int{}
		list, err := objects.List(t.Context(), "state/")
		require.NoError(t, err)
		for _, o := range list {
			files[path.Dir(o.Name)]++
		}
		require.Len(t, files, parts)
		for part, n := range files {
			require.LessOrEqual(t, n, 2*keep*every+keep, part)
		}
	}
	require.Zero(t, log.Count(vfs.KindList), "list calls in %d batches", batches)
	last := kit.Progress()[batches-1].Checkpoint
	require.LessOrEqual(t, int(last.ChainMax), 2*every)
	require.NoError(t, kit.Stop())
}

// report 30: a restart fails at the same record, with the same epoch, and a program that
// skips it goes on behind it: nothing is lost, nothing is counted twice.
func TestBadRecordAcrossRestarts(t *testing.T) {
	t.Parallel()
	kit, in := decoding(t)
	kit.Checkpoint()
	in.Batch("1").Batch("2", "garbage", "3").Batch("4")
	kit.Tick(2)
	for range 3 {
		var at *rdd.RecordError
		var batch *dstream.BatchError
		require.ErrorAs(t, kit.Err(), &at)
		require.ErrorAs(t, kit.Err(), &batch)
		assert.Equal(t, []any{"texts", "0", int64(2), uint64(2)}, []any{at.Stream, at.Partition, at.Offset, batch.Batch.Epoch})
		kit.Restart()
		require.NoError(t, kit.Start())
		kit.Await()
	}
	require.Error(t, kit.Err())
	kit.Restart()
	kit.Job(decodingJob, dstream.WithRecordPolicy(dstream.Skip))
	require.NoError(t, kit.Start())
	kit.Await()
	kit.Tick(1)
	require.NoError(t, kit.Err())
	assert.Equal(t, [][]int{{1}, {2, 3}, {4}}, milltest.Output[int](kit, "out"))
	assert.Equal(t, map[string]int{"n": 10}, milltest.State[string, int](kit, "sums"))
}
