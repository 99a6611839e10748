package dstream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/batchfiles"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
)

type celsius int

func (c celsius) String() string { return fmt.Sprintf("%d°C", int(c)) }

// Folders are named as Spark names them, and hold a part for each partition, empty ones too.
func TestSaveAsTextFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // a prefix that is relative stays where the job was built
	type pairs = dstream.Pair[string, dstream.Pair[int8, celsius]]
	newRig(t, time.Second, func(c ssc) error {
		in := dstream.QueueNamed(c, "q", 2, []pairs{dstream.KV("a", dstream.KV(int8(-1), celsius(20)))}, nil)
		dstream.SaveAsTextFiles(in, filepath.Join("out", "t"), "txt")
		dstream.SaveAsTextFiles(in, filepath.Join("out", "t"), "", dstream.Name("no suffix"))
		return nil
	}).start().tick(2)
	t.Chdir(t.TempDir())
	store, err := vfs.NewDir(vfs.Disk(), filepath.Join(dir, "out"), "r")
	require.NoError(t, err)
	all, err := store.List(t.Context(), "")
	require.NoError(t, err)
	var names []string
	for _, o := range all {
		names = append(names, o.Name)
	}
	require.Equal(t, []string{
		"t-1000021000.txt/_PARTS", "t-1000021000.txt/_SUCCESS", "t-1000021000.txt/part-00000", "t-1000021000.txt/part-00001",
		"t-1000021000/_PARTS", "t-1000021000/_SUCCESS", "t-1000021000/part-00000", "t-1000021000/part-00001",
		"t-1000022000.txt/_PARTS", "t-1000022000.txt/_SUCCESS", "t-1000022000.txt/part-00000", "t-1000022000.txt/part-00001",
		"t-1000022000/_PARTS", "t-1000022000/_SUCCESS", "t-1000022000/part-00000", "t-1000022000/part-00001",
	}, names)
	lines, err := batchfiles.Lines(t.Context(), store, "t-1000021000")
	require.NoError(t, err)
	got, err := rdd.Collect(t.Context(), rdd.Glom(lines))
	require.NoError(t, err)
	require.Equal(t, [][]string{{}, {"(a,(-1,20°C))"}}, got)
}

type stop struct {
	Name  string
	Times []time.Time
}

// What a stream saves is what ReadRecordFiles gives, and a stream may be joined with it.
func TestSaveAsRecordFiles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var batches [][]stop
		for range rapid.IntRange(1, 3).Draw(rt, "batches") {
			batches = append(batches, rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) stop {
				return stop{rapid.String().Draw(rt, "name"), []time.Time{time.Unix(rapid.Int64Range(0, 1<<40).Draw(rt, "time"), 0).UTC()}}
			}), 0, 5).Draw(rt, "stops"))
		}
		prefix := filepath.Join(t.TempDir(), "stops")
		partitions := rapid.IntRange(1, 3).Draw(rt, "partitions")
		r := newRig(t, time.Second, func(c ssc) error {
			dstream.SaveAsRecordFiles(dstream.QueueNamed(c, "q", partitions, batches...), prefix, "")
			return nil
		}).start().tick(len(batches))
		require.NoError(t, r.ssc.Stop(context.Background()))
		var folders []string
		var all []stop
		for i, b := range batches {
			folders = append(folders, batchfiles.Name(prefix, "", zero.Add(time.Duration(i+1)*time.Second)))
			all = append(all, b...)
			one, err := dstream.ReadRecordFiles[stop](folders[i])
			require.NoError(t, err)
			got, err := rdd.Collect(t.Context(), one)
			require.NoError(t, err)
			require.Equal(t, append([]stop{}, b...), append([]stop{}, got...))
		}
		back, err := dstream.ReadRecordFiles[stop](folders...)
		require.NoError(t, err)
		var seen []stop
		newRig(t, time.Second, func(c ssc) error {
			dstream.ForeachRDD(dstream.Constant(c, back), func(ctx context.Context, _ dstream.Batch, r *dstream.RDD[stop]) (err error) {
				seen, err = rdd.Collect(ctx, r)
				return err
			})
			return nil
		}).start().tick(1)
		require.Equal(t, append([]stop{}, all...), append([]stop{}, seen...))
	})
}

func TestReadRecordFilesFaults(t *testing.T) {
	_, err := dstream.ReadRecordFiles[int]()
	require.ErrorContains(t, err, "no folder is named")
	missing := filepath.Join(t.TempDir(), "n-1")
	_, err = dstream.ReadRecordFiles[int](missing)
	require.ErrorIs(t, err, batchfiles.ErrUnfinished)
	require.ErrorContains(t, err, missing)
}

// The format does not change: this was saved by the first version that had it.
func TestOldRecordFiles(t *testing.T) {
	r, err := dstream.ReadRecordFiles[dstream.Pair[string, int]](filepath.Join("testdata", "prices-1000.records"))
	require.NoError(t, err)
	got, err := rdd.Collect(t.Context(), rdd.Glom(r))
	require.NoError(t, err)
	require.Equal(t, [][]dstream.Pair[string, int]{{dstream.KV("apple", 3)}, {dstream.KV("pear", 5), dstream.KV("apple", 4)}}, got)
}

// savingJob counts words and saves the counts; out is where they go.
func savingJob(out *vfs.FS) func(c ssc) error {
	return func(c ssc) error {
		store, err := vfs.NewDir(*out, "/out", fmt.Sprintf("run%d", rand.Uint64()))
		if err != nil {
			return err
		}
		ones := dstream.MapPair(dstream.QueueNamed[string](c, "words", 1), func(w string) (string, int) { return w, 1 })
		counts := dstream.UpdateStateByKey(ones, func(ones []int, n dstream.Option[int]) dstream.Option[int] {
			return dstream.Some(n.OrElse(0) + len(ones))
		}, dstream.Name("counts"), dstream.NumPartitions(2))
		dstream.SaveAsTextFiles(counts, "counts", "txt", dstream.SaveIn(store), dstream.Name("text"))
		dstream.SaveAsRecordFiles(counts, "counts", "rec", dstream.SaveIn(store), dstream.Name("records"))
		return nil
	}
}

var savingInput = [][]string{{"a", "bb", "a"}, {}, {"b", "a"}}

// savedBatches gives what is saved, by batch time, and sees that both forms say the same.
func savedBatches(t *testing.T, fsys vfs.FS) map[int64][]string {
	t.Helper()
	store, err := vfs.NewDir(fsys, "/out", "reader")
	require.NoError(t, err)
	saved, err := batchfiles.List(t.Context(), store, "counts", "txt")
	require.NoError(t, err)
	out := map[int64][]string{}
	for _, s := range saved {
		lines, err := batchfiles.Lines(t.Context(), store, s.Folder)
		require.NoError(t, err)
		out[s.Time.Unix()], err = rdd.Collect(t.Context(), lines)
		require.NoError(t, err)
	}
	saved, err = batchfiles.List(t.Context(), store, "counts", "rec")
	require.NoError(t, err)
	for _, s := range saved {
		rec, err := batchfiles.Records[word](t.Context(), store, s.Folder, nil)
		require.NoError(t, err)
		got, err := rdd.Collect(t.Context(), rec)
		require.NoError(t, err)
		var text []string
		for _, w := range got {
			text = append(text, fmt.Sprintf("(%s,%d)", w.Key, w.Value))
		}
		require.ElementsMatch(t, out[s.Time.Unix()], text)
	}
	return out
}

// CP3: wherever the process dies, in any call to the checkpoint or to the files, alone or with
// the machine: in the end each committed batch is saved once, whole, under its own name,
// and nothing else is.
func TestSaveCrashAtEveryCall(t *testing.T) {
	want := [][]string{{"(a,2)", "(bb,1)"}, {"(a,2)", "(bb,1)"}, {"(a,3)", "(b,1)", "(bb,1)"}}
	var mem *vfs.Mem
	var out vfs.FS
	for k := 1; ; k += everyCall() {
		var f vfs.Faults
		f.Fail(vfs.Rule{K: k, Dead: true, Forever: true})
		mem = vfs.NewMem()
		out = vfs.WithFaults(mem, &f)
		kit := milltest.New(t, time.Second, savingJob(&out))
		kit.Workers(1) // so that calls come in one order
		kit.Checkpoint(dstream.RetainSnapshots(20))
		kit.WrapCheckpoint(func(fs vfs.FS) vfs.FS { return vfs.WithFaults(fs, &f) })
		milltest.Input[string](kit, "words").Batches(savingInput...)
		kit.Tick(len(savingInput))
		err := kit.Err()
		ended := f.Hits() == 0
		if !ended {
			rng, percent := rand.New(rand.NewPCG(uint64(k), 3)), []int{0, 50, 100}[k%3]
			mem = mem.CrashClone(rng, percent)
			out = mem
			kit.CrashKeeping(rng, percent)
			kit.WrapCheckpoint(nil)
			finish(kit, len(savingInput))
		}
		require.NoError(t, kit.Err(), "call %d; before: %v", k, err)
		got := savedBatches(t, mem)
		times := batchTimes(t, kit)
		require.GreaterOrEqual(t, len(times), len(want))
		for i, ns := range times { // with the redone one there may be a batch too many, which is empty
			require.ElementsMatch(t, want[min(i, len(want)-1)], got[ns/1e9], "call %d, batch %d", k, i+1)
		}
		require.Len(t, got, len(times))
		if ended {
			t.Logf("%d calls", k-1)
			require.Greater(t, k, 150)
			return
		}
	}
}

// What a disk does not do at once is tried again; what it never does ends the run with an
// error that names the file.
func TestSaveRetries(t *testing.T) {
	for _, forever := range []bool{false, true} {
		var f vfs.Faults
		f.Fail(vfs.Rule{Kinds: vfs.KindSync, Path: "part-00001*", Forever: forever})
		var out vfs.FS = vfs.WithFaults(vfs.NewMem(), &f)
		kit := milltest.New(t, time.Second, savingJob(&out))
		milltest.Input[string](kit, "words").Batches(savingInput...)
		kit.Tick(1)
		if !forever {
			require.NoError(t, kit.Err())
			require.Equal(t, 1, f.Hits())
			continue
		}
		require.ErrorIs(t, kit.Err(), vfs.ErrInjected)
		require.ErrorContains(t, kit.Err(), "part-00001")
		require.Greater(t, f.Hits(), 2)
	}
}

// An epoch that comes out another way when it is redone ends the run, and leaves what is
// there.
func TestSaveDiffers(t *testing.T) {
	mem := vfs.NewMem()
	store := func(tag string) vfs.Store { s, _ := vfs.NewDir(mem, "/out", tag); return s }
	boom := errors.New("boom")
	tag, mark, last := "a", "", boom // of the program
	kit := milltest.New(t, time.Second, func(c ssc) error {
		words := dstream.Map(dstream.QueueNamed[string](c, "words", 1), func(w string) string { return w + mark })
		dstream.SaveAsTextFiles(words, "w", "", dstream.SaveIn(store(tag)), dstream.Name("save"))
		dstream.Foreach(words, func(context.Context, dstream.Batch, string) error { return last }, dstream.Name("last"))
		return nil
	})
	kit.Checkpoint()
	milltest.Input[string](kit, "words").Batch("x")
	kit.Tick(1)
	require.ErrorIs(t, kit.Err(), boom)
	tag, mark, last = "b", "!", nil
	kit.Crash()
	kit.Tick(1)
	require.ErrorIs(t, kit.Err(), batchfiles.ErrDiffers)
	require.ErrorContains(t, kit.Err(), "is there with other content (it has 2 bytes, not 3)")
	tag, mark = "c", ""
	kit.Crash()
	kit.Tick(1)
	require.NoError(t, kit.Err())
	require.Positive(t, kit.Epoch())
}

// Faults of the call are told at the start.
func TestSaveFaults(t *testing.T) {
	store := vfs.NewObjects()
	for name, tc := range map[string]struct {
		interval time.Duration
		job      func(c ssc)
		want     string
	}{
		"suffix":       {time.Second, func(c ssc) { dstream.SaveAsTextFiles(numbers(c), "x", "a/b") }, `dstream.SaveAsTextFiles: suffix "a/b"`},
		"prefix":       {time.Second, func(c ssc) { dstream.SaveAsTextFiles(numbers(c), "../x", "", dstream.SaveIn(store)) }, "no path in a store"},
		"nil store":    {time.Second, func(c ssc) { dstream.SaveAsRecordFiles(numbers(c), "x", "", dstream.SaveIn(nil)) }, "dstream.SaveAsRecordFiles: the store is nil"},
		"option":       {time.Second, func(c ssc) { dstream.SaveAsTextFiles(numbers(c), "x", "", nil) }, "option 0 is nil"},
		"save in":      {time.Second, func(c ssc) { dstream.Print(numbers(c), 1, dstream.SaveIn(store)) }, "dstream.Print: SaveIn does not apply to Print"},
		"milliseconds": {1500 * time.Microsecond, func(c ssc) { dstream.SaveAsTextFiles(numbers(c), "x", "") }, "a batch comes every 1.5ms"},
		"type": {time.Second, func(c ssc) {
			dstream.SaveAsRecordFiles(dstream.Map(numbers(c), func(int) chan int { return nil }), "x", "")
		}, "chan int"},
		"same place": {time.Second, func(c ssc) {
			n := numbers(c)
			dstream.SaveAsTextFiles(n, "x", "")
			dstream.SaveAsRecordFiles(n, "./x", "")
		}, "saves under the same names"},
		"same place in a store": {time.Second, func(c ssc) {
			n := numbers(c)
			dstream.SaveAsTextFiles(n, "x", "", dstream.SaveIn(store))
			dstream.SaveAsTextFiles(n, "x", "", dstream.SaveIn(store))
		}, "saves under the same names"},
	} {
		t.Run(name, func(t *testing.T) {
			c := dstream.NewStreamingContext(tc.interval)
			tc.job(c)
			err := c.Validate()
			require.ErrorIs(t, err, dstream.ErrInvalid)
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "save_test.go:")
		})
	}
	c := dstream.NewStreamingContext(time.Second)
	n := numbers(c)
	dstream.SaveAsTextFiles(n, "x", "")
	dstream.SaveAsTextFiles(n, "x", "txt")
	dstream.SaveAsTextFiles(n, "x", "", dstream.SaveIn(store))
	dstream.SaveAsTextFiles(n, "x", "", dstream.SaveIn(vfs.NewObjects()))
	require.NoError(t, c.Validate())
}
