package oracle

import (
	"fmt"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

// A life is one run of a case, from batch from to before batch to (from 0).
type life struct {
	from, to   int
	partitions int
}

// livesOf cuts n batches of a case where it was stopped, or its partitioner swapped.
func livesOf(c *Case, n int) []life {
	lives := []life{{partitions: c.Config.Partitions}}
	last := func() *life { return &lives[len(lives)-1] }
	for i := range n {
		cut, partitions := false, last().partitions
		for _, stop := range c.Config.StopAfterBatches {
			cut = cut || stop == i
		}
		for _, swap := range c.Config.RepartitionAfterBatch {
			if swap[0] == i {
				cut, partitions = true, swap[1]
			}
		}
		if cut {
			last().to = i
			lives = append(lives, life{from: i, partitions: partitions})
		}
	}
	last().to = n
	return lives
}

// The ways in which a life ends.
const (
	stopped = "stopped" // in order
	killed  = "killed"  // with all that was not synced
)

// replayLives runs a mapWithState case in its lives, each on the checkpoint of the one
// before, with the clock held between them. Spark runs the last batch of a life again;
// Statemill does not, and the outputs are those of an uninterrupted run all the same.
func replayLives(t testing.TB, c *Case, end string) {
	n := c.BatchCount()
	in := &Script[dstream.Pair[string, string]]{Partitions: max(1, c.Config.InputPartitions)}
	for i := range n {
		var batch []dstream.Pair[string, string]
		for _, row := range at(c.Batches, i).List {
			p, err := pair[string](row)
			if err != nil {
				t.Fatalf("batch %d: %v", i+1, err)
			}
			batch = append(batch, p)
		}
		in.Batches = append(in.Batches, batch)
	}
	disk := vfs.NewMem()
	var outputs []Multiset
	var snapshots []Multiset
	for number, l := range livesOf(c, n) {
		store, err := vfs.NewDir(disk, "/ckpt", fmt.Sprint("life", number))
		if err != nil {
			t.Fatal(err)
		}
		// The file system of the next one is taken before this life goes on to its
		// own end, which a killed one has not.
		kit := oneLife(t, c, l, in, store)
		if end == killed {
			disk = disk.CrashClone(nil, 0)
		}
		// The kit lists them by epoch: those of earlier lives are empty here, and a
		// swap of the partitioner is an epoch too.
		outputs = append(outputs, texts(newest(l.to-l.from, milltest.Output[string](kit, outName)))...)
		for _, batch := range newest(l.to-l.from, milltest.Output[dstream.Pair[string, int64]](kit, snapName)) {
			snapshots = append(snapshots, canonAll(t, batch, func(p dstream.Pair[string, int64]) any { return []any{p.Key, p.Value} }))
		}
		if err := kit.Stop(); err != nil {
			t.Fatalf("life of batches %d to %d: %v", l.from+1, l.to, err)
		}
	}
	compareOutputs(t, c, n, outputs)
	for i := range min(n, len(snapshots), len(c.Snapshots)) {
		compareBatch(t, "snapshots", i, c.Snapshots[i].List, snapshots[i])
	}
}

func newest[T any](n int, all []T) []T { return all[len(all)-n:] }

func oneLife(t testing.TB, c *Case, l life, in *Script[dstream.Pair[string, string]], store vfs.Store) *milltest.Kit {
	job := mwsJob(t, c, l.partitions, func(ssc *dstream.StreamingContext) *dstream.DStream[dstream.Pair[string, string]] {
		return dstream.From(ssc, inName, in)
	})
	// A few versions a snapshot, so that lives begin with both kinds of files.
	kit := milltest.New(t, c.Interval(), job, dstream.WithCheckpointStore(store, dstream.SnapshotEvery(3)), dstream.WithRescale())
	kit.StartAt(time.UnixMilli(int64(l.from) * c.Config.BatchIntervalMs))
	for i := l.from; i < l.to; i++ {
		kit.Tick(1)
		compareTimes(t, c, kit, i)
		if l.partitions > 0 {
			all := kit.Progress()
			if got := all[len(all)-1].Operators[0].Partitions; got != l.partitions {
				t.Errorf("batch %d: %d partitions, want %d", i+1, got, l.partitions)
			}
		}
	}
	if err := kit.Err(); err != nil {
		t.Fatalf("the run of batches %d to %d failed: %v", l.from+1, l.to, err)
	}
	return kit
}
