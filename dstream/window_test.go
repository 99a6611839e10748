package dstream_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/rdd"
)

const sec = time.Second

func singles(n int) (batches [][]int) {
	for i := range n {
		batches = append(batches, []int{i})
	}
	return batches
}

// window runs n batches of a second through the window that f adds, and gives what
// it gave each time.
func window[T, U any](t *testing.T, n int, batches [][]T, f func(in *dstream.DStream[T]) dstream.Stream[U]) [][]U {
	t.Helper()
	r := newRig(t, sec, func(c ssc) error {
		dstream.Print(f(dstream.From(c, "in", newScript(1, batches...))), 1, dstream.Name("o"))
		return nil
	}).start().tick(n)
	return out[U](r, "o")
}

// WI1–WI4: windows of 0…5, one a batch.
func TestWindow(t *testing.T) {
	for _, tc := range []struct {
		name          string
		length, slide time.Duration
		want          [][]int
	}{
		{"WI1", 2 * sec, sec, [][]int{{0}, {0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}},
		{"WI2", 2 * sec, 2 * sec, [][]int{{0, 1}, {2, 3}, {4, 5}}},
		{"WI3", 4 * sec, 2 * sec, [][]int{{0, 1}, {0, 1, 2, 3}, {2, 3, 4, 5}, {4, 5}}},
		{"WI4", 2 * sec, 3 * sec, [][]int{{1, 2}, {4, 5}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := len(tc.want) * int(tc.slide/sec)
			require.Equal(t, tc.want, window(t, n, singles(6), func(in *dstream.DStream[int]) dstream.Stream[int] {
				w := dstream.Window(in, tc.length, tc.slide)
				require.Equal(t, tc.slide, w.SlideDuration())
				return w
			}))
		})
	}
}

func kvs(text string) (rows []kv) {
	for _, f := range strings.Fields(text) {
		v := 1
		_, _ = fmt.Sscanf(f[1:], "%d", &v)
		rows = append(rows, kv{Key: f[:1], Value: v})
	}
	return rows
}

func show(batches [][]kv) (out []string) {
	for _, b := range texts(batches, func(p kv) string { return fmt.Sprintf("%s%d", p.Key, p.Value) }) {
		out = append(out, strings.Join(b, " "))
	}
	return out
}

func subtract(a, b int) int { return a - b }

func notZero(_ string, v int) bool { return v != 0 }

// WI5: reduce by key and window, plain, with the inverse function, and with a filter.
func TestReduceByKeyAndWindow(t *testing.T) {
	in := [][]kv{kvs("a1"), kvs("a1"), nil, nil}
	type stream = *dstream.DStream[kv]
	for name, tc := range map[string]struct {
		f    func(in stream) dstream.Stream[kv]
		want []string
	}{
		"plain": {func(in stream) dstream.Stream[kv] {
			return dstream.ReduceByKeyAndWindow(in, add, 2*sec, sec)
		}, []string{"a1", "a2", "a1", ""}},
		"inverse": {func(in stream) dstream.Stream[kv] {
			return dstream.ReduceByKeyAndWindowInverse(in, add, subtract, nil, 2*sec, sec)
		}, []string{"a1", "a2", "a1", "a0"}},
		"filter": {func(in stream) dstream.Stream[kv] {
			return dstream.ReduceByKeyAndWindowInverse(in, add, subtract, notZero, 2*sec, sec, dstream.NumPartitions(3))
		}, []string{"a1", "a2", "a1", ""}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, show(window(t, 4, in, tc.f))) })
	}
}

// WI6: 4 s every 2 s over a:1 … a:6.
func TestWindowOfSums(t *testing.T) { // WI6
	in := [][]kv{kvs("a1"), kvs("a2"), kvs("a3"), kvs("a4"), kvs("a5"), kvs("a6"), nil, nil}
	want := []string{"a3", "a10", "a18", "a11"}
	require.Equal(t, want, show(window(t, 8, in, func(in *dstream.DStream[kv]) dstream.Stream[kv] {
		return dstream.ReduceByKeyAndWindow(in, add, 4*sec, 2*sec)
	})))
	require.Equal(t, want, show(window(t, 8, in, func(in *dstream.DStream[kv]) dstream.Stream[kv] {
		return dstream.ReduceByKeyAndWindowInverse(in, add, subtract, nil, 4*sec, 2*sec)
	})))
	values := func(in *dstream.DStream[kv]) *dstream.DStream[int] {
		return dstream.Map(in, func(p kv) int { return p.Value })
	}
	sums := [][]int{{3}, {10}, {18}, {11}}
	require.Equal(t, sums, window(t, 8, in, func(in *dstream.DStream[kv]) dstream.Stream[int] {
		return dstream.ReduceByWindow(values(in), add, 4*sec, 2*sec)
	}))
	require.Equal(t, sums, window(t, 8, in, func(in *dstream.DStream[kv]) dstream.Stream[int] {
		return dstream.ReduceByWindowInverse(values(in), add, subtract, 4*sec, 2*sec)
	}))
}

// WI7: the number of records of a window; nothing before the first one.
func TestCountByWindow(t *testing.T) { // WI7
	count := func(in *dstream.DStream[int]) dstream.Stream[int64] { return dstream.CountByWindow(in, 2*sec, sec) }
	require.Equal(t, [][]int64{{1}, {2}, {3}, {3}, {1}, {0}}, window(t, 6, [][]int{{1}, {1}, {1, 2}, {0}, nil, nil}, count))
	require.Equal(t, [][]int64{{}, {}, {1}, {1}, {0}}, window(t, 5, [][]int{nil, nil, {7}}, count))
}

// WI8: how often each value is in a window.
func TestCountByValueAndWindow(t *testing.T) { // WI8
	got := window(t, 5, [][]string{{"a"}, {"b", "b"}, {"a", "b"}, nil, nil}, func(in words) dstream.Stream[dstream.Pair[string, int64]] {
		return dstream.CountByValueAndWindow(in, 2*sec, sec)
	})
	require.Equal(t, [][]string{{"a1"}, {"a1", "b2"}, {"a1", "b3"}, {"a1", "b1"}, {}}, texts(got, func(p dstream.Pair[string, int64]) string {
		return fmt.Sprintf("%s%d", p.Key, p.Value)
	}))
}

func TestGroupByKeyAndWindow(t *testing.T) {
	got := window(t, 4, [][]kv{kvs("a1 b1"), kvs("a2"), kvs("a3 a4")}, func(in *dstream.DStream[kv]) dstream.Stream[dstream.Pair[string, []int]] {
		return dstream.GroupByKeyAndWindow(in, 2*sec, sec, dstream.NumPartitions(1))
	})
	require.Equal(t, "[[{a [1]} {b [1]}] [{a [1 2]} {b [1]}] [{a [2 3 4]}] [{a [3 4]}]]", fmt.Sprint(got))
}

// What leaves a window must be in its result.
func TestInverseWindowWithoutTheKey(t *testing.T) {
	r := newRig(t, sec, func(c ssc) error {
		in := dstream.From(c, "in", newScript(1, kvs("a1"), kvs("a-1"), nil))
		dstream.Print(dstream.ReduceByKeyAndWindowInverse(in, add, subtract, notZero, 2*sec, sec, dstream.Name("w")), 1)
		return nil
	}).start().tick(2) // a1 - a1 = 0: dropped, while both are still in the window
	err := r.tryTick()
	require.ErrorIs(t, err, dstream.ErrNotInWindow)
	var re *rdd.RecordError
	require.ErrorAs(t, err, &re)
	require.Equal(t, "a", re.Key)
	require.Equal(t, "w", re.Operator)
}

// Functions run once a record, however many windows have it; and windows of windows.
func TestWindowsComputeABatchOnce(t *testing.T) {
	calls := 0
	r := newRig(t, sec, func(c ssc) error {
		in := dstream.Map(dstream.From(c, "in", newScript(1, singles(6)...)), func(v int) int { calls++; return v })
		two := dstream.Window(in, 2*sec, sec)
		dstream.Print(two, 1, dstream.Name("two"))
		dstream.Print(dstream.Window(two, 2*sec, 2*sec), 1, dstream.Name("of two"))
		dstream.Print(dstream.CountByWindow(in, 4*sec, 2*sec), 1)
		return nil
	}).start().tick(6)
	require.Equal(t, 6, calls)
	require.Equal(t, [][]int{{0, 0, 1}, {1, 2, 2, 3}, {3, 4, 4, 5}}, out[int](r, "of two"))
}

// CL1: windows have what they read remembered, and it adds up along a chain.
func TestWindowsHaveTheirParentsRemembered(t *testing.T) { // CL1
	var mapped, inner, outer *dstream.DStream[int]
	newRig(t, sec, func(c ssc) error {
		mapped = dstream.Map(dstream.From(c, "in", newScript(1, singles(10)...)), func(v int) int { return v })
		inner = dstream.Window(mapped, 2*sec, sec)
		outer = dstream.Window(inner, 4*sec, 2*sec)
		dstream.Print(outer, 1)
		return nil
	}, dstream.WithRemember(3*sec)).start().tick(10)
	for _, tc := range []struct {
		of                        *dstream.DStream[int]
		oldest, newest, forgotten int
	}{{outer, 8, 10, 6}, {inner, 4, 10, 3}, {mapped, 2, 10, 1}} {
		at := func(s int) time.Time { return zero.Add(time.Duration(s) * sec) }
		got, err := dstream.Slice(tc.of, at(tc.oldest), at(tc.newest))
		require.NoError(t, err)
		require.Len(t, got, 1+(tc.newest-tc.oldest)/int(tc.of.SlideDuration()/sec))
		require.Equal(t, at(tc.oldest), got[0].Time)
		require.Equal(t, at(tc.newest), got[len(got)-1].Time)
		for _, b := range got {
			b.RDD.Release()
		}
		_, err = dstream.Slice(tc.of, at(tc.forgotten), at(tc.newest))
		require.ErrorIs(t, err, dstream.ErrForgotten)
	}
}

// An operator with state over a windowed stream has its time-outs at the slides, and what is made
// of it gives them there.
func TestStateOverAWindow(t *testing.T) {
	r := newRig(t, sec, func(c ssc) error {
		w := dstream.Window(ones(c, [][]string{{"a"}, {"b"}, {}, {}, {"c"}, {}}), 2*sec, 2*sec)
		s := dstream.MapWithState(w, dstream.Function(func(k string, v dstream.Option[int], s *dstream.State[int]) string {
			if s.IsTimingOut() {
				return k + " is over"
			}
			s.Update(1)
			return k
		}).Timeout(2*sec))
		require.Equal(t, 2*sec, s.SlideDuration()) // D9
		dstream.Print(dstream.Filter(s, func(string) bool { return true }), 1, dstream.Name("o"))
		dstream.Print(dstream.Count(w), 1, dstream.Name("count"))
		return nil
	}).start().tick(6)
	require.Equal(t, [][]string{{"a", "b"}, {}, {"a is over", "b is over", "c"}}, sorted[string](r, "o"))
	require.Equal(t, [][]int64{{2}, {0}, {1}}, out[int64](r, "count"))
}

// F7, and durations that cannot be: each with the values and the line.
func TestWindowFaults(t *testing.T) {
	half := 1500 * time.Millisecond
	for name, tc := range map[string]struct {
		job  func(c ssc)
		want string
	}{
		"length":    {func(c ssc) { dstream.Window(numbers(c), half, sec) }, `dstream.Window: the window length of "Window-1" is 1.5s: want a multiple of 1s, the slide of "numbers"`},
		"slide":     {func(c ssc) { dstream.Window(numbers(c), 2*sec, half) }, `the slide of "Window-1" is 1.5s: want a multiple of 1s`},
		"no length": {func(c ssc) { dstream.CountByWindow(numbers(c), 0, sec) }, "dstream.CountByWindow: the window length is 0s"},
		"no slide":  {func(c ssc) { dstream.ReduceByWindow(numbers(c), add, sec, -sec) }, "dstream.ReduceByWindow: the slide is -1s"},
		"of a window": {func(c ssc) { dstream.Window(dstream.Window(numbers(c), 2*sec, 2*sec), 3*sec, 2*sec) },
			`the window length of "Window-2" is 3s: want a multiple of 2s, the slide of "Window-1"`},
		"inverse":     {func(c ssc) { dstream.ReduceByKeyAndWindowInverse(keyed(c), add, subtract, nil, half, sec) }, "dstream.ReduceByKeyAndWindowInverse: the window length"},
		"nil inverse": {func(c ssc) { dstream.ReduceByKeyAndWindowInverse(keyed(c), add, nil, nil, sec, sec) }, "the function is nil"},
		"nil":         {func(c ssc) { dstream.ReduceByKeyAndWindow(keyed(c), nil, sec, sec) }, "dstream.ReduceByKeyAndWindow: the function is nil"},
		"nil reduce":  {func(c ssc) { dstream.ReduceByWindow(numbers(c), nil, sec, sec) }, "dstream.ReduceByWindow: the function is nil"},
		"partitions":  {func(c ssc) { dstream.GroupByKeyAndWindow(keyed(c), sec, sec, dstream.NumPartitions(0)) }, "the number of partitions is 0"},
		"two slides": {func(c ssc) {
			dstream.Union(numbers(c), dstream.Window(numbers2(c), 2*sec, 2*sec))
		}, `dstream.Union: the streams have different slides: 1s of "numbers", and 2s of "Window-2"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := dstream.New(sec)
			tc.job(c)
			dstream.Print(numbers3(c), 1)
			require.ErrorContains(t, c.Validate(), tc.want)
			require.ErrorContains(t, c.Validate(), "window_test.go:")
		})
	}
}

// A window over an operator's outputs, and over its state.
func TestWindowOverState(t *testing.T) {
	r := newRig(t, sec, func(c ssc) error {
		s := dstream.MapWithState(ones(c, [][]string{{"a"}, {"a", "b"}, {}, {"b"}}), dstream.Function(func(k string, v dstream.Option[int], s *dstream.State[int]) string {
			return fmt.Sprint(k, count(k, v, s))
		}))
		dstream.Print(dstream.Window(s, 2*sec, sec), 1, dstream.Name("mapped"))
		dstream.Print(dstream.Window(s.StateSnapshots(), 2*sec, 2*sec), 1, dstream.Name("states"))
		return nil
	}).start().tick(4)
	require.Equal(t, [][]string{{"a1"}, {"a1", "a2", "b1"}, {"a2", "b1"}, {"b2"}}, sorted[string](r, "mapped"))
	require.Equal(t, [][]string{{"a1", "a2", "b1"}, {"a2", "a2", "b1", "b2"}}, pairs[string, int](r, "states"))
}

// A record that a function fails on is left out of every window, and counted once.
func TestSkippedRecordsInWindows(t *testing.T) {
	bad := fmt.Errorf("bad record")
	r := newRig(t, sec, func(c ssc) error {
		in := dstream.MapErr(dstream.From(c, "in", newScript(2, []int{1, 2}, []int{3, 4}, nil)), func(v int) (int, error) {
			if v%2 == 0 {
				return 0, bad
			}
			return v, nil
		})
		dstream.Print(dstream.ReduceByWindow(in, add, 2*sec, 2*sec), 1, dstream.Name("sum"))
		dstream.Print(dstream.ReduceByKeyAndWindowInverse(dstream.KeyBy(in, func(v int) int { return 0 }), add, subtract, nil, 2*sec, sec), 1, dstream.Name("inverse"))
		return nil
	}, dstream.WithRecordPolicy(dstream.Skip)).start().tick(3)
	require.Equal(t, [][]int{{4}}, out[int](r, "sum"))
	require.Equal(t, [][]string{{"01"}, {"04"}, {"03"}}, pairs[int, int](r, "inverse"))
	var skipped int64
	for _, p := range r.progress {
		skipped += p.SkippedRecords
	}
	require.EqualValues(t, 2, skipped)
}

// An output that fails is tried again over the same window.
func TestRetriedOutputOfAWindow(t *testing.T) {
	calls, fails := 0, 1
	r := newRig(t, sec, func(c ssc) error {
		in := dstream.Map(dstream.From(c, "in", newScript(1, singles(4)...)), func(v int) int { calls++; return v })
		dstream.Print(dstream.CountByWindow(in, 2*sec, sec), 1, dstream.Name("o"))
		return nil
	}, dstream.WithTaskRetries(1))
	r.fail = func(c harness.OutputCall) error {
		if c.Epoch == 2 && fails > 0 {
			fails--
			return fmt.Errorf("not now")
		}
		return nil
	}
	r.start().tick(4)
	require.Equal(t, [][]int64{{1}, {2}, {2}, {2}}, out[int64](r, "o"))
	require.Equal(t, 4, calls)
}

// A window over what was moved: the moved rows go as soon as they are kept.
func TestWindowOverMovedRecords(t *testing.T) {
	r := newRig(t, sec, func(c ssc) error {
		in := dstream.From(c, "in", newScript(2, kvs("a1 b1 a2"), kvs("a5"), nil))
		sums := dstream.ReduceByKey(in, add, dstream.NumPartitions(2))
		dstream.Print(dstream.Window(sums, 2*sec, sec), 1, dstream.Name("o"))
		dstream.Print(dstream.CountByWindow(dstream.Repartition(in, 3), 2*sec, sec), 1, dstream.Name("n"))
		dstream.Print(dstream.MapWithState(sums, dstream.Function(count)), 1)
		return nil
	}).start().tick(4)
	require.Equal(t, []string{"a3 b1", "a3 a5 b1", "a5", ""}, show(out[kv](r, "o")))
	require.Equal(t, [][]int64{{3}, {4}, {1}, {0}}, out[int64](r, "n"))
}
