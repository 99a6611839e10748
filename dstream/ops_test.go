package dstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
)

// run runs one batch of words over the operators that f adds, and gives what its
// output "o" saw.
func runOp[T any](t *testing.T, batch []string, f func(in *dstream.DStream[string]) dstream.Stream[T]) []T {
	t.Helper()
	r := newRig(t, time.Second, func(c ssc) error {
		dstream.Print(f(dstream.From(c, "in", newScript(2, batch))), 3, dstream.Name("o"))
		return nil
	}).start().tick(2)
	return out[T](r, "o")[0]
}

type (
	words = *dstream.DStream[string]
	kv    = dstream.Pair[string, int]
)

func lengths(in words) *dstream.DStream[kv] {
	return dstream.MapPair(in, func(s string) (string, int) { return s[:1], len(s) })
}

func TestNarrowOperators(t *testing.T) {
	in := []string{"ab", "c", "abc", "d"}
	text := func(f func(in words) dstream.Stream[string]) []string { return runOp(t, in, f) }
	split := func(s string) []string { return strings.Split(s, "") }
	letters := []string{"a", "b", "c", "a", "b", "c", "d"}

	require.Equal(t, []string{"ab!", "c!", "abc!", "d!"}, text(func(in words) dstream.Stream[string] {
		return dstream.Map(in, func(s string) string { return s + "!" })
	}))
	require.Equal(t, []string{"ab!", "c!", "abc!", "d!"}, text(func(in words) dstream.Stream[string] {
		return dstream.MapErr(in, func(s string) (string, error) { return s + "!", nil })
	}))
	require.Equal(t, letters, text(func(in words) dstream.Stream[string] { return dstream.FlatMap(in, split) }))
	require.Equal(t, letters, text(func(in words) dstream.Stream[string] {
		return dstream.FlatMapErr(in, func(s string) ([]string, error) { return split(s), nil })
	}))
	require.Equal(t, letters, text(func(in words) dstream.Stream[string] {
		return dstream.FlatMapSeq(in, func(s string) iter.Seq[string] { return slices.Values(split(s)) })
	}))
	require.Equal(t, letters, text(func(in words) dstream.Stream[string] {
		return dstream.FlatMapEmit(in, func(s string, emit func(string)) error {
			for _, l := range split(s) {
				emit(l)
			}
			return nil
		})
	}))
	require.Equal(t, []string{"ab", "abc"}, text(func(in words) dstream.Stream[string] {
		return dstream.Filter(in, func(s string) bool { return len(s) > 1 })
	}))
	require.Equal(t, []string{"ab", "abc"}, text(func(in words) dstream.Stream[string] {
		return dstream.FilterErr(in, func(s string) (bool, error) { return len(s) > 1, nil })
	}))
	require.Equal(t, []string{"2", "2"}, text(func(in words) dstream.Stream[string] {
		return dstream.MapPartitions(in, func(rows iter.Seq[string]) iter.Seq[string] {
			return func(yield func(string) bool) { yield(fmt.Sprint(len(slices.Collect(rows)))) }
		})
	}))
	require.Equal(t, [][]string{{"ab", "c"}, {"abc", "d"}}, runOp(t, in, func(in words) dstream.Stream[[]string] { return dstream.Glom(in) }))
	require.Equal(t, []dstream.Pair[int, string]{{Key: 2, Value: "ab"}, {Key: 1, Value: "c"}, {Key: 3, Value: "abc"}, {Key: 1, Value: "d"}},
		runOp(t, in, func(in words) dstream.Stream[dstream.Pair[int, string]] {
			return dstream.KeyBy(in, func(s string) int { return len(s) })
		}))
}

func TestValueOperators(t *testing.T) {
	in := []string{"ab", "c", "abc", "d"}
	want := []kv{{Key: "a", Value: 20}, {Key: "c", Value: 10}, {Key: "a", Value: 30}, {Key: "d", Value: 10}}
	require.Equal(t, want, runOp(t, in, func(in words) dstream.Stream[kv] {
		return dstream.MapValues(lengths(in), func(i int) int { return i * 10 })
	}))
	require.Equal(t, want, runOp(t, in, func(in words) dstream.Stream[kv] {
		return dstream.MapValuesErr(lengths(in), func(i int) (int, error) { return i * 10, nil })
	}))
	require.Equal(t, want, runOp(t, in, func(in words) dstream.Stream[kv] {
		return dstream.MapPairErr(in, func(s string) (string, int, error) { return s[:1], len(s) * 10, nil })
	}))
	require.Equal(t, []kv{{Key: "a", Value: 0}, {Key: "a", Value: 1}, {Key: "a", Value: 0}, {Key: "a", Value: 1}, {Key: "a", Value: 2}},
		runOp(t, in, func(in words) dstream.Stream[kv] {
			return dstream.FlatMapValues(dstream.Filter(lengths(in), func(p kv) bool { return p.Key == "a" }), func(n int) (all []int) {
				for i := range n {
					all = append(all, i)
				}
				return all
			})
		}))
}

func TestWideOperators(t *testing.T) {
	in := []string{"ab", "c", "abc", "d", "cd"}
	require.Equal(t, []int64{5}, runOp(t, in, func(in words) dstream.Stream[int64] { return dstream.Count(in) }))
	require.Equal(t, []int64{0}, runOp(t, nil, func(in words) dstream.Stream[int64] { return dstream.Count(in) }))
	concat := func(a, b string) string { return a + b }
	require.Equal(t, []string{"abcabcdcd"}, runOp(t, in, func(in words) dstream.Stream[string] { return dstream.Reduce(in, concat) }))
	require.Empty(t, runOp(t, nil, func(in words) dstream.Stream[string] { return dstream.Reduce(in, concat) }))
	reduced := runOp(t, in, func(in words) dstream.Stream[kv] {
		return dstream.ReduceByKey(lengths(in), add, dstream.NumPartitions(1), dstream.Name("sums"))
	})
	require.Equal(t, []kv{{Key: "a", Value: 5}, {Key: "c", Value: 3}, {Key: "d", Value: 1}}, reduced) // first seen first
	require.Len(t, runOp(t, in, func(in words) dstream.Stream[kv] { return dstream.ReduceByKey(lengths(in), add) }), 3)
	require.Equal(t, append(slices.Clone(in), "ab!", "c!", "abc!", "d!", "cd!"), runOp(t, in, func(in words) dstream.Stream[string] {
		return dstream.Union(in, dstream.Map(in, func(s string) string { return s + "!" }))
	}))
	parts := runOp(t, in, func(in words) dstream.Stream[[]string] { return dstream.Glom(dstream.Repartition(in, 3)) })
	require.Len(t, parts, 3)
	require.ElementsMatch(t, in, slices.Concat(parts...))
	byLetter := partitioner.Func("letter", 4, func(s string) int { return int(s[0] - 'a') })
	require.Equal(t, [][]kv{{{Key: "a", Value: 2}, {Key: "a", Value: 3}}, {}, {{Key: "c", Value: 1}, {Key: "c", Value: 2}}, {{Key: "d", Value: 1}}},
		runOp(t, in, func(in words) dstream.Stream[[]kv] {
			p := dstream.PartitionBy(lengths(in), byLetter)
			return dstream.Glom(dstream.PartitionBy(dstream.MapValues(p, func(i int) int { return i }), byLetter))
		}))
}

func TestTransform(t *testing.T) {
	got := runOp(t, []string{"a", "b", "c"}, func(in words) dstream.Stream[string] {
		return dstream.Transform(in, func(at time.Time, r *dstream.RDD[string]) (*dstream.RDD[string], error) {
			n, err := rdd.Count(context.Background(), r)
			if err != nil {
				return nil, err
			}
			return rdd.Map(r, func(s string) string { return fmt.Sprint(s, n, at.Sub(zero)) }), nil
		})
	})
	require.Equal(t, []string{"a3 1s", "b3 1s", "c3 1s"}, got)

	r := newRig(t, time.Second, func(c ssc) error {
		dstream.Print(dstream.Transform(numbers(c), func(time.Time, *dstream.RDD[int]) (*dstream.RDD[int], error) { return nil, nil }), 1)
		return nil
	}).start()
	require.Error(t, r.tryTick())
	require.ErrorContains(t, r.end(), "gave a nil RDD")
}

// MapWithState takes the blocks of a PartitionBy by an equal partitioner as they
// are, and chains of stateful operators are one epoch.
func TestChainedState(t *testing.T) {
	r := newRig(t, time.Second, func(c ssc) error {
		p := dstream.PartitionBy(ones(c, inputA), partitioner.Hash[string](3))
		one := dstream.MapWithState(p, dstream.Function(func(k string, v dstream.Option[int], s *dstream.State[int]) pair {
			return dstream.KV(k, count(k, v, s))
		}).Named("one").NumPartitions(3))
		two := dstream.MapWithState(one, dstream.Function(count).Named("two"))
		outputs(two)
		dstream.Print(p, 1)
		return nil
	}).start().tick(7)
	require.Equal(t, map[string]int{"a": 5, "b": 3, "c": 1}, stateOf[string, int](r, "one"))
	require.Equal(t, map[string]int{"a": 15, "b": 6, "c": 1}, stateOf[string, int](r, "two"))
	require.Equal(t, []string{"one", "two"}, r.h.Engine().Operators())
	require.Equal(t, []string{"in"}, r.h.Engine().Sources())
	require.Equal(t, []string{"mapped", "snapshots"}, r.h.Engine().Outputs()[:2])
	require.Equal(t, zero, r.h.Engine().ZeroTime())
	_, err := r.h.Engine().State("three")
	require.ErrorContains(t, err, `no stateful operator is named "three"`)
}

// Keyed: emits any number of outputs, sets deadlines; a deadline call removes
// the state unless it updates it.
func TestKeyed(t *testing.T) {
	r := newRig(t, time.Second, func(c ssc) error {
		dedup := dstream.Keyed(ones(c, [][]string{{"a", "a"}, {"a", "b"}, {}, {}, {"a"}}), "dedup",
			func(c *dstream.Call[int, string], k string, v dstream.Option[int]) error {
				switch {
				case !v.IsSome():
					c.Emit(k + " is over")
				case !c.State.Exists():
					c.State.Update(1)
					c.SetDeadline(c.Batch.Time.Add(2 * time.Second))
					c.Emit(k)
					c.Emit(k + " again")
				default:
					c.State.Update(c.State.Get() + 1)
				}
				return nil
			}, dstream.NumPartitions(2))
		dstream.Print(dedup, 1, dstream.Name("mapped"))
		dstream.Print(dedup.StateSnapshots(), 1, dstream.Name("snapshots"))
		return nil
	}).start().tick(3)
	require.Equal(t, map[string]int{"a": 3, "b": 1}, stateOf[string, int](r, "dedup"))
	require.Equal(t, zero.Add(3*time.Second).UnixNano(), stateRows[string, int](r, "dedup")[0].Time)
	r.tick(2)
	require.Equal(t, [][]string{{"a", "a again"}, {"b", "b again"}, {}, {"a is over"}, {"a", "a again", "b is over"}}, sorted[string](r, "mapped"))
	require.EqualValues(t, 1, r.last().Operators[0].TimedOut)
}

// MW7: default and explicit checkpoint intervals.
func TestCheckpointIntervals(t *testing.T) {
	for _, c := range []struct{ batch, set, want time.Duration }{
		{100 * time.Millisecond, 0, time.Second}, {time.Second, 0, 10 * time.Second}, {10 * time.Second, 0, 100 * time.Second},
		{100 * time.Millisecond, 2 * time.Second, 2 * time.Second}, {time.Second, 2 * time.Second, 2 * time.Second},
		{10 * time.Second, 20 * time.Second, 20 * time.Second},
	} {
		c1 := dstream.New(c.batch)
		s := dstream.MapWithState(ones(c1, nil), dstream.Function(count))
		if c.set > 0 {
			s.Checkpoint(c.set)
			s2 := dstream.MapWithState(ones(dstream.New(c.batch), nil), dstream.Function(count).CheckpointInterval(c.set))
			require.Equal(t, c.want, s2.CheckpointInterval())
		}
		require.Equal(t, c.want, s.CheckpointInterval())
		require.Equal(t, c.batch, s.SlideDuration())
		dstream.Print(s, 1)
		require.NoError(t, c1.Validate())
	}
}

// F4: the default interval of an UpdateStateByKey.
func TestCheckpointIntervalOfUpdates(t *testing.T) {
	for _, c := range []struct{ batch, slide, want time.Duration }{
		{time.Second, time.Second, 10 * time.Second}, {3 * time.Second, 3 * time.Second, 12 * time.Second},
		{15 * time.Second, 15 * time.Second, 15 * time.Second}, {10 * time.Second, 10 * time.Second, 10 * time.Second},
		{time.Second, 4 * time.Second, 12 * time.Second}, {time.Millisecond, time.Millisecond, 10 * time.Second},
	} {
		w := dstream.Window(ones(dstream.New(c.batch), nil), c.slide, c.slide)
		u := dstream.UpdateStateByKey(w, total)
		require.Equal(t, c.want, u.CheckpointInterval())
		require.Equal(t, 2*c.slide, u.Checkpoint(2*c.slide).CheckpointInterval())
	}
}

func TestPrint(t *testing.T) {
	var text bytes.Buffer
	r := newRig(t, time.Second, func(c ssc) error {
		in := dstream.From(c, "in", newScript(2, []string{"ab", "c", "abc"}, nil))
		dstream.Print(lengths(in), 2)
		dstream.Print(dstream.KeyBy(lengths(in), func(p kv) int { return p.Value }), 10)
		return nil
	}, dstream.WithOutput(&text))
	r.h.OnOutput(nil)
	r.start().tick(2)
	const line = "-------------------------------------------\n"
	head := func(s string) string { return line + "Time: 1970-01-12 13:47:0" + s + " UTC\n" + line }
	require.Equal(t, head("1")+"(a,2)\n(c,1)\n...\n\n"+head("1")+"(2,(a,2))\n(1,(c,1))\n(3,(a,3))\n\n"+head("2")+"\n"+head("2")+"\n", text.String())
}

func TestForeach(t *testing.T) {
	var got []string
	r := newRig(t, time.Second, func(c ssc) error {
		in := dstream.From(c, "in", newScript(3, []string{"a", "b", "c", "d"}))
		dstream.Foreach(in, func(_ context.Context, b dstream.Batch, s string) error {
			got = append(got, fmt.Sprint(b.Epoch, s))
			return nil
		})
		return nil
	}).start().tick(1)
	require.Equal(t, []string{"1a", "1b", "1c", "1d"}, got)
	require.Equal(t, "Foreach", r.last().Outputs[0].Kind)

	fails := newRig(t, time.Second, func(c ssc) error {
		dstream.Foreach(numbers(c), func(context.Context, dstream.Batch, int) error { return errors.New("full") })
		return nil
	}, dstream.WithRecordPolicy(dstream.Skip)).start()
	require.Error(t, fails.tryTick())
	require.ErrorContains(t, fails.end(), `output "numbers": full`)
}

// The sources that need only Go, through the front door.
func TestTextSources(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "lines.txt")
	f, err := vfs.Disk().Create(file)
	require.NoError(t, err)
	_, err = f.Write([]byte("one\ntwo\n"))
	require.NoError(t, errors.Join(err, f.Close()))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = c.Write([]byte("from afar\n"))
			c.Close()
		}
	}()
	seen := map[string]bool{}
	r := newRig(t, time.Second, func(c ssc) error {
		all := dstream.Union(
			dstream.TextFileStream(c, "file", file),
			dstream.DirStream(c, "dir", dir),
			dstream.ReaderStream(c, "reader", strings.NewReader("three\n")),
			dstream.SocketStream(c, "socket", l.Addr().String()),
		)
		dstream.Foreach(all, func(_ context.Context, _ dstream.Batch, s string) error { seen[s] = true; return nil })
		return nil
	}).start()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for len(seen) < 4 && ctx.Err() == nil {
		r.tick(1) // the socket's and the reader's lines come when they come
	}
	require.Equal(t, map[string]bool{"one": true, "two": true, "three": true, "from afar": true}, seen)
	require.NoError(t, r.ssc.Stop(context.Background()))
	d := dstream.StdinStream(dstream.New(time.Second), "stdin")
	require.Equal(t, "stdin", d.Name())
}

// An unreadable file is a clear error.
func TestUnreadableFile(t *testing.T) {
	c := dstream.New(time.Second)
	dstream.Print(dstream.TextFileStream(c, "file", "no-such-file.txt"), 1)
	err := dstreamStart(c)
	require.ErrorContains(t, err, "no-such-file.txt")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func dstreamStart(c ssc) error {
	if err := c.Start(); err != nil {
		return err
	}
	return errors.Join(c.Stop(context.Background()), errors.New("it started"))
}
