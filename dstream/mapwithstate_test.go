package dstream_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
)

// inputA is the input of MW1 to MW5 and MW8.
var inputA = [][]string{{}, {"a"}, {"a", "b"}, {"a", "b", "c"}, {"a", "b"}, {"a"}, {}}

// ones makes pairs with value 1 of the input, in two partitions.
func ones(ssc *dstream.StreamingContext, batches [][]string) *dstream.DStream[dstream.Pair[string, int]] {
	in := dstream.From(ssc, "in", newScript(2, batches...))
	return dstream.MapPair(in, func(s string) (string, int) { return s, 1 })
}

func count(key string, v dstream.Option[int], s *dstream.State[int]) int {
	n := v.OrElse(0) + s.OrElse(0)
	s.Update(n)
	return n
}

// outputs registers a stream and its operator's snapshots as outputs.
func outputs[M any](s *dstream.MapWithStateDStream[string, int, M]) {
	dstream.Print(s, 10, dstream.Name("mapped"))
	dstream.Print(s.StateSnapshots(), 10, dstream.Name("snapshots"))
}

var snapshotsA = [][]string{{}, {"a1"}, {"a2", "b1"}, {"a3", "b2", "c1"}, {"a4", "b3", "c1"}, {"a5", "b3", "c1"}, {"a5", "b3", "c1"}}

// MW1
func TestShortForm(t *testing.T) {
	r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
		outputs(dstream.MapWithState(ones(ssc, inputA), dstream.Function(count).Named("count")))
		return nil
	}).start().tick(7)
	require.Equal(t, [][]int{{}, {1}, {1, 2}, {1, 2, 3}, {3, 4}, {5}, {}}, sorted[int](r, "mapped"))
	require.Equal(t, snapshotsA, pairs[string, int](r, "snapshots"))
	require.Equal(t, map[string]int{"a": 5, "b": 3, "c": 1}, stateOf[string, int](r, "count"))
}

// MW2
func TestLongForm(t *testing.T) {
	r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
		outputs(dstream.MapWithState(ones(ssc, inputA), dstream.FunctionTime(
			func(_ time.Time, key string, v dstream.Option[int], s *dstream.State[int]) (string, bool) {
				count(key, v, s)
				return key + key, true
			})))
		return nil
	}).start().tick(7)
	require.Equal(t, [][]string{{}, {"aa"}, {"aa", "bb"}, {"aa", "bb", "cc"}, {"aa", "bb"}, {"aa"}, {}}, sorted[string](r, "mapped"))
	require.Equal(t, snapshotsA, pairs[string, int](r, "snapshots"))
}

// MW3
func TestKeyAndCount(t *testing.T) {
	r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
		outputs(dstream.MapWithState(ones(ssc, inputA), dstream.Function(
			func(key string, v dstream.Option[int], s *dstream.State[int]) dstream.Pair[string, int] {
				return dstream.KV(key, count(key, v, s))
			})))
		return nil
	}).start().tick(7)
	require.Equal(t, [][]string{{}, {"a1"}, {"a2", "b1"}, {"a3", "b2", "c1"}, {"a4", "b3"}, {"a5"}, {}}, pairs[string, int](r, "mapped"))
	require.Equal(t, snapshotsA, pairs[string, int](r, "snapshots"))
}

// MW4
func TestInitialState(t *testing.T) {
	seed := map[string]int{"a": 5, "b": 10, "c": -20, "d": 0}
	r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
		outputs(dstream.MapWithState(ones(ssc, inputA), dstream.FunctionTime(
			func(_ time.Time, key string, v dstream.Option[int], s *dstream.State[int]) (string, bool) {
				count(key, v, s)
				return "", false
			}).InitialState(maps.All(seed)).Named("seeded")))
		return nil
	}).start().tick(7)
	require.Equal(t, [][]string{{}, {}, {}, {}, {}, {}, {}}, out[string](r, "mapped"))
	require.Equal(t, [][]string{
		{"a5", "b10", "c-20", "d0"}, {"a6", "b10", "c-20", "d0"}, {"a7", "b11", "c-20", "d0"}, {"a8", "b12", "c-19", "d0"},
		{"a9", "b13", "c-19", "d0"}, {"a10", "b13", "c-19", "d0"}, {"a10", "b13", "c-19", "d0"},
	}, pairs[string, int](r, "snapshots"))
	// D5: initial keys carry the time of the first batch.
	require.Equal(t, zero.Add(time.Second).UnixNano(), stateRows[string, int](r, "seeded")[3].Time)
}

// MW5
func TestRemoving(t *testing.T) {
	input := [][]string{{}, {"a"}, {"a", "b"}, {"a", "b", "c"}, {"a", "b", "c"}, {"a", "b"}, {"a"}, {}}
	r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
		outputs(dstream.MapWithState(ones(ssc, input), dstream.FunctionTime(
			func(_ time.Time, key string, _ dstream.Option[int], s *dstream.State[int]) (string, bool) {
				if s.Exists() {
					s.Remove()
					return key, true
				}
				s.Update(1)
				return "", false
			})))
		return nil
	}).start().tick(8)
	require.Equal(t, [][]string{{}, {}, {"a"}, {"b"}, {"a", "c"}, {"b"}, {"a"}, {}}, sorted[string](r, "mapped"))
	require.Equal(t, [][]string{{}, {"a1"}, {"b1"}, {"a1", "c1"}, {"b1"}, {"a1"}, {}, {}}, pairs[string, int](r, "snapshots"))
}

// MW6
func TestTimingOut(t *testing.T) {
	input := [][]string{{"a", "b", "c"}, {"a", "b"}, {"a"}, {}, {}, {"a"}}
	for range 20 {
		input = append(input, []string{"a"})
	}
	for name, scan := range map[string]func(dstream.StateSpec[string, int, int, string]) dstream.StateSpec[string, int, int, string]{
		"every batch": func(s dstream.StateSpec[string, int, int, string]) dstream.StateSpec[string, int, int, string] {
			return s
		},
		"at checkpoint": func(s dstream.StateSpec[string, int, int, string]) dstream.StateSpec[string, int, int, string] {
			return s.TimeoutScan(dstream.AtCheckpoint)
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := dstream.FunctionTime(
				func(_ time.Time, key string, v dstream.Option[int], s *dstream.State[int]) (string, bool) {
					if s.IsTimingOut() {
						return key, true
					}
					s.Update(1)
					return "", false
				}).Timeout(3 * time.Second)
			r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
				outputs(dstream.MapWithState(ones(ssc, input), scan(spec)))
				return nil
			}).start().tick(20)
			got := slices.Concat(out[string](r, "mapped")...)
			slices.Sort(got)
			require.Equal(t, []string{"b", "c"}, got)
			snapshots := pairs[string, int](r, "snapshots")
			require.Contains(t, snapshots, []string{"a1", "b1", "c1"})
			require.Equal(t, []string{"a1"}, snapshots[len(snapshots)-1])
		})
	}
}

// MW9: the compiler infers everything from a function literal.
func TestInference(t *testing.T) {
	r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
		in := dstream.From(ssc, "in", newScript(1, []int{1, 2, 3}))
		byParity := dstream.KeyBy(in, func(i int) bool { return i%2 == 0 })
		sums := dstream.MapWithState(byParity, dstream.Function(
			func(even bool, v dstream.Option[int], s *dstream.State[int64]) string {
				s.Update(s.OrElse(0) + int64(v.OrElse(0)))
				if even {
					return "even"
				}
				return "odd"
			}))
		dstream.Print(sums, 1, dstream.Name("mapped"))
		dstream.Foreach(sums.StateSnapshots(), func(context.Context, dstream.Batch, dstream.Pair[bool, int64]) error { return nil })
		return nil
	}).start().tick(1)
	require.Equal(t, [][]string{{"even", "odd", "odd"}}, sorted[string](r, "mapped"))
}
