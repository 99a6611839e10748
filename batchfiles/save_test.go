package batchfiles_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/batchfiles"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
)

type item struct {
	ID    int
	Names []string
	Price map[string]float64
	At    *int64
}

// What was saved comes back, row by row and partition by partition.
func TestRecordsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) item {
			i := item{ID: rapid.Int().Draw(t, "id")}
			i.Names = rapid.SliceOfN(rapid.StringN(0, 90, 200), 1, 3).Draw(t, "names")
			if rapid.Bool().Draw(t, "priced") {
				i.Price = rapid.MapOfN(rapid.String(), rapid.Float64(), 1, 3).Draw(t, "price")
			}
			if rapid.Bool().Draw(t, "at") {
				i.At = rapid.Ptr(rapid.Int64(), false).Draw(t, "time")
			}
			return i
		}), 0, 20).Draw(t, "items")
		p := rapid.IntRange(1, 5).Draw(t, "partitions")
		store := vfs.NewObjects()
		r := rdd.Parallelize(all, p)
		require.NoError(t, batchfiles.SaveRecords(bg, store, "i-1", r, nil))
		back, err := batchfiles.Records[item](bg, store, "i-1", nil)
		require.NoError(t, err)
		require.Equal(t, p, back.NumPartitions())
		for range 2 { // as often as one likes
			want, err := rdd.Collect(bg, rdd.Glom(r))
			require.NoError(t, err)
			got, err := rdd.Collect(bg, rdd.Glom(back))
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		require.NoError(t, batchfiles.SaveRecords(bg, store, "i-1", r, nil))
	})
}

func TestTextComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.StringMatching(`[^\n]*`), 0, 30).Draw(t, "lines")
		p := rapid.IntRange(1, 5).Draw(t, "partitions")
		store := vfs.NewObjects()
		require.NoError(t, batchfiles.SaveText(bg, store, "t-1", rdd.Parallelize(all, p), nil))
		back, err := batchfiles.Lines(bg, store, "t-1")
		require.NoError(t, err)
		got, err := rdd.Collect(bg, back)
		require.NoError(t, err)
		require.Equal(t, append([]string{}, all...), append([]string{}, got...))
	})
}

// Rows of every length about the places where the length before them grows.
func TestLongRows(t *testing.T) {
	var all []string
	for _, n := range []int{0, 1, 126, 127, 128, 129, 1 << 14, 1<<14 + 5, 1 << 16, 1 << 21} {
		all = append(all, strings.Repeat("x", n))
	}
	store := vfs.NewObjects()
	require.NoError(t, batchfiles.SaveRecords(bg, store, "l", rdd.Parallelize(all, 1), nil))
	back, err := batchfiles.Records[string](bg, store, "l", nil)
	require.NoError(t, err)
	got, err := rdd.Collect(bg, back)
	require.NoError(t, err)
	require.Equal(t, all, got)
}

// A batch that is there stays as it is, and the error says in what the other one differs.
func TestDiffers(t *testing.T) {
	store := vfs.NewObjects()
	require.NoError(t, saveText(store, rows(7, 3)))
	before := objects(t, store)
	numbers := rdd.Parallelize([]int{1}, 3)
	for _, tc := range []struct {
		save func(store vfs.Store) error
		path string
		want string
	}{
		{func(s vfs.Store) error { return saveText(s, rows(8, 3)) }, "part-00001", "it has 8 bytes, not 12"},
		{func(s vfs.Store) error {
			return saveText(s, rdd.Map(rows(7, 3), func(i int) int { return i - i/600 }))
		}, "part-00002", "12 bytes have the sum"},
		{func(s vfs.Store) error { return saveText(s, rows(7, 2)) }, "_SUCCESS", "it has 3 parts, not 2"},
		{func(s vfs.Store) error { return batchfiles.SaveRecords(bg, s, folder, numbers, nil) }, "_SUCCESS", "it holds text, not records"},
	} {
		// Also before the batch is complete.
		half := vfs.NewObjects()
		for name, b := range before {
			if !strings.HasSuffix(name, "_SUCCESS") {
				put(t, half, name, b)
			}
		}
		for _, s := range []vfs.Store{store, half} {
			there := objects(t, s)
			err := tc.save(s)
			require.ErrorIs(t, err, batchfiles.ErrDiffers)
			require.ErrorContains(t, err, tc.want)
			var d *batchfiles.DiffersError
			require.ErrorAs(t, err, &d)
			require.True(t, d.Permanent())
			if s == vfs.Store(store) {
				require.Equal(t, folder+"/"+tc.path, d.Path)
			}
			after := objects(t, s)
			for name, b := range there {
				require.Equal(t, b, after[name])
			}
			require.NotContains(t, after, strings.TrimSuffix(folder, "/")+"/part-00003")
			if s == vfs.Store(half) {
				require.NotContains(t, after, folder+"/_SUCCESS")
			}
		}
	}
	require.NoError(t, batchfiles.SaveRecords(bg, store, "r", numbers, nil))
	require.ErrorContains(t, batchfiles.SaveRecords(bg, store, "r", rdd.Map(numbers, func(int) string { return "" }), nil), "its records are int")
}

func objects(t testing.TB, store vfs.Store) map[string]string {
	t.Helper()
	list, err := store.List(bg, "")
	require.NoError(t, err)
	out := map[string]string{}
	for _, o := range list {
		b, err := store.Get(bg, o.Name)
		require.NoError(t, err)
		out[o.Name] = string(b)
	}
	return out
}

// A partition that fails in its middle leaves no part; the error is the record's.
func TestFailingRecord(t *testing.T) {
	boom := errors.New("boom")
	for name, r := range map[string]*rdd.RDD[int]{
		"above": rdd.MapErr(rows(7, 1), func(i int) (int, error) {
			if i == 400 {
				return 0, boom
			}
			return i, nil
		}),
		"panic": rdd.Map(rows(7, 1), func(i int) int {
			if i == 400 {
				panic(boom)
			}
			return i
		}),
	} {
		m := disk(t)
		err := saveText(writer(t, m, "a"), r)
		var re *rdd.RecordError
		require.ErrorAs(t, err, &re, name)
		require.ErrorIs(t, err, boom)
		require.EqualValues(t, 4, re.Offset)
		require.Len(t, files(t, m, "/out"), 1, "%s: _PARTS alone: %v", name, files(t, m, "/out"))
	}
	err := batchfiles.SaveText(bg, vfs.NewObjects(), folder, rows(7, 3), func(dst []byte, i int) []byte {
		if i == 500 {
			panic(boom)
		}
		return dst
	})
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "offset 5")
	require.ErrorContains(t, saveText(vfs.NewObjects(), nil), "nil rdd")
	require.ErrorContains(t, batchfiles.SaveRecords(bg, vfs.NewObjects(), "x", rdd.Parallelize([]chan int{nil}, 1), nil), "chan")
}

// guardedExec runs tasks in the guarded mode.
type guardedExec struct {
	rdd.Executor
	skipped *int64
}

func (g guardedExec) RunTasks(_ bgctx, name string, n int, task func(*rdd.Task) error) error {
	for i := range n {
		t := &rdd.Task{Ctx: bg, Name: name, Partition: i, Guard: new(rdd.Guard)}
		if err := task(t); err != nil {
			return err
		}
		*g.skipped += t.Guard.Skipped()
	}
	return nil
}

// In the guarded mode a record that fails leaves no row, of those before it neither.
func TestGuarded(t *testing.T) {
	skipped := int64(0)
	r := rdd.FlatMap(rows(5, 2), func(i int) []int { return []int{i, i + 1} }).WithExecutor(guardedExec{rdd.Local(1, nil), &skipped})
	store := vfs.NewObjects()
	require.NoError(t, batchfiles.SaveText(bg, store, folder, r, func(dst []byte, i int) []byte {
		if i == 201 {
			panic("boom")
		}
		return fmt.Append(dst, i)
	}))
	require.EqualValues(t, 1, skipped)
	require.Equal(t, []string{"0", "1", "100", "101", "300", "301", "400", "401"}, readText(t, store))
	b, err := batchfiles.Open(bg, store, folder)
	require.NoError(t, err)
	require.EqualValues(t, 4, b.Parts()[1].Rows)
	require.Equal(t, batchfiles.Text, b.Form())
	require.True(t, b.Schema().IsZero())
}

func TestNames(t *testing.T) {
	at := time.UnixMilli(1500).UTC()
	for _, tc := range []struct{ prefix, suffix, want string }{ // as Spark names them
		{"out/words", "txt", "out/words-1500.txt"},
		{"words", "", "words-1500"},
		{"", "txt", "1500.txt"},
		{"out/", "", "out/1500"},
	} {
		require.Equal(t, tc.want, batchfiles.Name(tc.prefix, tc.suffix, at))
		require.NoError(t, batchfiles.CheckName(tc.prefix, tc.suffix))
	}
	for _, bad := range [][2]string{{"../x", ""}, {"/x", ""}, {"x", "a/b"}, {"x", `a\b`}, {"a//b", ""}} {
		require.ErrorIs(t, batchfiles.CheckName(bad[0], bad[1]), fs.ErrInvalid, "%v", bad)
	}
}

// List finds the batches that are complete, and those of no other prefix.
func TestList(t *testing.T) {
	for _, prefix := range []string{"words", "out/words", "out/", ""} {
		store := vfs.NewObjects()
		var want []batchfiles.Saved
		for _, ms := range []int64{9000, 10000, -1000} {
			at := time.UnixMilli(ms).UTC()
			want = append(want, batchfiles.Saved{Folder: batchfiles.Name(prefix, "txt", at), Time: at})
			require.NoError(t, batchfiles.SaveText(bg, store, want[len(want)-1].Folder, rows(1, 1), nil))
		}
		slices.SortFunc(want, func(a, b batchfiles.Saved) int { return a.Time.Compare(b.Time) })
		for _, other := range []string{batchfiles.Name(prefix, "txt2", time.UnixMilli(1)), batchfiles.Name(prefix+"x", "txt", time.UnixMilli(2)), prefix + "y.txt"} {
			require.NoError(t, batchfiles.SaveText(bg, store, other, rows(1, 1), nil))
		}
		put(t, store, batchfiles.Name(prefix, "txt", time.UnixMilli(3000))+"/part-00000", "x")
		got, err := batchfiles.List(bg, store, prefix, "txt")
		require.NoError(t, err)
		require.Equal(t, want, got, prefix)
	}
	_, err := batchfiles.List(bg, vfs.NewObjects(), "../x", "")
	require.ErrorIs(t, err, fs.ErrInvalid)
}

// Records of an older type are read, refused, or migrated.
func TestOtherTypes(t *testing.T) {
	type old struct{ A int }
	type grown struct {
		A int
		B string
	}
	store := vfs.NewObjects()
	require.NoError(t, batchfiles.SaveRecords(bg, store, "o", rdd.Parallelize([]old{{1}, {2}}, 1), nil))
	r, err := batchfiles.Records[grown](bg, store, "o", nil)
	require.NoError(t, err)
	got, err := rdd.Collect(bg, r)
	require.NoError(t, err)
	require.Equal(t, []grown{{A: 1}, {A: 2}}, got)

	_, err = batchfiles.Records[string](bg, store, "o", nil)
	var schema *codec.SchemaError
	require.ErrorAs(t, err, &schema)
	text, err := batchfiles.Records[string](bg, store, "o", nil, codec.Migrate(func(o old) (string, error) {
		if o.A == 2 {
			return "", errors.New("not two")
		}
		return fmt.Sprint(o.A), nil
	}))
	require.NoError(t, err)
	_, err = rdd.Collect(bg, text)
	require.ErrorContains(t, err, "read o: record at o/part-00000 offset 1: ")
	require.ErrorContains(t, err, "not two")

	_, err = batchfiles.Lines(bg, store, "o")
	require.ErrorContains(t, err, "use Records")
	require.NoError(t, saveText(store, rows(1, 1)))
	_, err = batchfiles.Records[int](bg, store, folder, nil)
	require.ErrorContains(t, err, "use Lines")
	_, err = batchfiles.Records[int](bg, store, "nowhere", nil)
	require.ErrorIs(t, err, batchfiles.ErrUnfinished)
}
