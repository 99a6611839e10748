package metamorphic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/oracle"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

// A life is one run of a job that has several, on one checkpoint.
type life struct {
	settings
	every, retain int
	bySize        bool
	compress      dstream.Compression
	// It gets so many ticks, unless it dies before in its dies'th call to the file
	// system. Then it is stopped, or crashes: of what was not synced a share in
	// percent is kept, at random.
	ticks, dies int
	crash       bool
	keep        int
	seed        uint64
}

func (l life) String() string {
	return fmt.Sprintf("%v every=%d retain=%d bySize=%t %v ticks=%d dies=%d crash=%t keep=%d", l.settings, l.every, l.retain,
		l.bySize, l.compress, l.ticks, l.dies, l.crash, l.keep)
}

func lives(partitions *rapid.Generator[int]) *rapid.Generator[[]life] {
	one := rapid.Custom(func(t *rapid.T) life {
		return life{
			settings: settings{
				workers: rapid.IntRange(1, 4).Draw(t, "workers"), block: rapid.SampledFrom([]int{1, 3, 64}).Draw(t, "block"),
				threshold: rapid.IntRange(1, 20).Draw(t, "threshold"), sourceParts: 1, stateParts: partitions.Draw(t, "state partitions"),
			},
			every: rapid.IntRange(1, 6).Draw(t, "every"), retain: rapid.IntRange(1, 3).Draw(t, "retain"), bySize: rapid.Bool().Draw(t, "by size"),
			compress: rapid.SampledFrom([]dstream.Compression{dstream.NoCompression, dstream.S2, dstream.Zstd}).Draw(t, "compression"),
			ticks:    rapid.IntRange(0, 5).Draw(t, "ticks"), dies: rapid.IntRange(0, 150).Draw(t, "dies"),
			crash: rapid.Bool().Draw(t, "crash"), keep: rapid.SampledFrom([]int{0, 30, 100}).Draw(t, "keep"),
			seed: rapid.Uint64().Draw(t, "seed"),
		}
	})
	return rapid.SliceOfN(one, 1, 4)
}

// runLives plays the batches through the lives; the last one goes on to the end. It
// gives the answer, the times of its batches, and the chain hashes of its end.
func runLives(t *rapid.T, batches [][]command, idle time.Duration, all []life) (a answer, times []int64, chains string) {
	var tb holder
	defer tb.clean()
	// A source whose positions say which batch is next: a batch that was planned by a
	// run that died without writing that down is given again, an empty one too.
	in := &oracle.Script[command]{Batches: batches, Partitions: 1}
	kit := milltest.New(&tb, time.Second, job(idle, all[0].settings, in), dstream.WithRescale())
	kit.Checkpoint()
	// Plans must be kept for the test, whatever the lives retain.
	known := map[uint64]int64{}
	look := func() {
		root := checkpoint.OpenRoot(kit.CheckpointStore("reader"))
		numbers, err := root.Commits(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range numbers {
			if p, err := root.Plan(context.Background(), n); err != nil {
				t.Fatal(err)
			} else if p.Kind == checkpoint.KindBatch {
				known[n] = p.Time
			}
		}
	}
	want := len(batches) + 4
	for i, l := range all {
		kit.Job(job(idle, l.settings, in), dstream.WithRescale())
		kit.Workers(l.workers)
		kit.BlockSize(l.block)
		kit.Checkpoint(dstream.SnapshotEvery(l.every), dstream.RetainSnapshots(l.retain), dstream.SnapshotBySize(l.bySize), dstream.Compress(l.compress))
		last := i == len(all)-1
		var f vfs.Faults
		if l.dies > 0 && !last {
			f.Fail(vfs.Rule{K: l.dies, Dead: true, Forever: true})
			kit.WrapCheckpoint(func(fs vfs.FS) vfs.FS { return vfs.WithFaults(fs, &f) })
		} else {
			kit.WrapCheckpoint(nil)
		}
		for n := 0; (last || n < l.ticks) && len(known) < want; n++ {
			kit.Tick(1)
			if kit.Err() != nil {
				break
			}
			look()
		}
		if last {
			break
		}
		if err := kit.Err(); err != nil && f.Hits() == 0 {
			t.Fatalf("life %d, %v: %v", i+1, l, err)
		}
		if l.crash || f.Hits() > 0 {
			kit.CrashKeeping(rand.New(rand.NewPCG(l.seed, 0)), l.keep)
		} else {
			kit.Restart()
		}
		look()
	}
	if err := kit.Start(); err != nil { // it has begun, unless nothing was left to do
		t.Fatalf("the last life, %v: %v", all, err)
	}
	if err := kit.Err(); err != nil {
		t.Fatalf("the last life, %v: %v", all, err)
	}
	a = answerOf(kit)
	for n := uint64(1); n <= kit.Epoch(); n++ {
		if at, ok := known[n]; ok {
			times = append(times, at)
		}
	}
	return a, times, chainsOf(t, kit)
}

// chainsOf gives the chain hashes of the newest version.
func chainsOf(t *rapid.T, kit *milltest.Kit) (chains string) {
	newest, err := checkpoint.OpenRoot(kit.CheckpointStore("reader")).Newest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range newest.Operators {
		for _, p := range op.Partitions {
			chains += fmt.Sprint(p.Chain, p.Keys, " ")
		}
	}
	return chains
}

// uninterrupted runs the batches in one run, at the given batch times; with options of
// a checkpoint it is on one.
func uninterrupted(t *rapid.T, batches [][]command, idle time.Duration, s settings, times []int64, opts ...dstream.CheckpointOption) (a answer, chains string) {
	var tb holder
	defer tb.clean()
	kit := milltest.New(&tb, time.Second, job(idle, s, &oracle.Script[command]{Batches: batches, Partitions: 1}))
	if opts != nil {
		kit.Checkpoint(opts...)
	}
	if err := kit.Start(); err != nil {
		t.Fatal(err)
	}
	for _, at := range times {
		kit.AdvanceTime(time.Unix(0, at).Sub(kit.Now()))
		kit.Await()
	}
	if err := kit.Err(); err != nil {
		t.Fatal(err)
	}
	if opts != nil {
		chains = chainsOf(t, kit)
	}
	return answerOf(kit), chains
}

// Stops, crashes at any call, other settings, snapshot policies, compressions and
// partition counts from life to life must not show: each key sees the same, the
// states and their times are the same. (The clock stands while nothing runs; a batch
// that was not planned yet when a life ended is the next one's, at a later time, so
// the uninterrupted run has its batches at the same times.)
func TestSameAnswerInSeveralLives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		batches := commands().Draw(t, "batches")
		idle := time.Duration(rapid.IntRange(1, 4).Draw(t, "idle")) * time.Second
		all := lives(rapid.IntRange(1, 5)).Draw(t, "lives")
		got, times, _ := runLives(t, batches, idle, all)
		want, _ := uninterrupted(t, batches, idle, settings{workers: 1, threshold: 20, sourceParts: 1, stateParts: 1}, times)
		s := all[len(all)-1].settings
		same(t, s, "mapped, key by key", perKey(want.mapped), perKey(got.mapped))
		same(t, s, "snapshots", want.snapshot, got.snapshot)
		same(t, s, "state times", want.times, got.times)
	})
}

// With the partitions and the compression left as they are, every version has the very
// bytes of an uninterrupted run: the chain hashes at the end are equal, and the outputs
// have the same order.
func TestSameBytesInSeveralLives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		batches := commands().Draw(t, "batches")
		idle := time.Duration(rapid.IntRange(1, 4).Draw(t, "idle")) * time.Second
		all := lives(rapid.Just(rapid.IntRange(1, 4).Draw(t, "partitions"))).Draw(t, "lives")
		for i := range all {
			all[i].compress = dstream.S2
		}
		got, times, chains := runLives(t, batches, idle, all)
		want, wanted := uninterrupted(t, batches, idle, all[0].settings, times, dstream.SnapshotEvery(200), dstream.Compress(dstream.S2))
		s := all[len(all)-1].settings
		same(t, s, "mapped", want.mapped, got.mapped)
		same(t, s, "reduced", want.reduced, got.reduced)
		same(t, s, "chain hashes", wanted, chains)
	})
}
