package dstream_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

type letter = dstream.Letter[string]

var errBad = errors.New("bad one")

// refuse fails for texts that begin with "bad", and panics for "boom".
func refuse(s string) error {
	if s == "boom" {
		panic("boom")
	}
	if strings.HasPrefix(s, "bad") {
		return errBad
	}
	return nil
}

func must(s string) string {
	if err := refuse(s); err != nil {
		panic(err)
	}
	return s
}

func noLetter(context.Context, dstream.Batch, letter) error { return nil }

// told is a letter as text: its place, its record, its operator and key, and the reason.
func told(ls []letter) (all []string) {
	for _, l := range ls {
		record := "-"
		if v, ok := l.Record.Get(); ok {
			record = v
		}
		text := fmt.Sprintf("%s/%s@%d %s %s: %s", l.Source, l.Partition, l.Offset, record, l.Operator, l.Reason())
		if l.Key != nil {
			text += fmt.Sprintf(" key %v", l.Key)
		}
		if l.Row != nil {
			text += fmt.Sprintf(" row %v", l.Row)
		}
		all = append(all, text)
	}
	return all
}

// strict is a state function that keeps how often it saw a key, and fails after it has
// changed that.
func strict(_ time.Time, k string, v dstream.Option[string], s *dstream.State[int]) (string, bool, error) {
	s.Update(s.OrElse(0) + 1)
	return k, true, refuse(k)
}

// Report 30, dead letter: whatever function fails, by an error or a panic, the record is
// delivered as the source gave it, with its place, the operator and the reason, in the
// order of the source; the others are as if it had not been there.
func TestLettersOfEveryOperator(t *testing.T) {
	self := func(s string) string { return s }
	keyed := func(in *dstream.DStream[string]) *dstream.DStream[dstream.Pair[string, string]] {
		return dstream.MapPair(in, func(s string) (string, string) { return s, s })
	}
	for name, tc := range map[string]struct {
		job func(in *dstream.DStream[string]) *dstream.DStream[string]
		key bool   // the key is told
		row string // the row is told, of a record
	}{
		"Map": {job: func(in *dstream.DStream[string]) *dstream.DStream[string] { return dstream.Map(in, must).Named("op") }},
		"fused": {job: func(in *dstream.DStream[string]) *dstream.DStream[string] {
			return dstream.Map(dstream.Filter(dstream.Map(in, self), func(s string) bool { must(s); return true }).Named("op"), self)
		}},
		"MapErr": {job: func(in *dstream.DStream[string]) *dstream.DStream[string] {
			return dstream.MapErr(in, func(s string) (string, error) { return s, refuse(s) }).Named("op")
		}},
		"FlatMapEmit": {job: func(in *dstream.DStream[string]) *dstream.DStream[string] {
			return dstream.FlatMapEmit(in, func(s string, emit func(string)) error { emit(s); return refuse(s) }).Named("op")
		}},
		"FilterErr": {job: func(in *dstream.DStream[string]) *dstream.DStream[string] {
			return dstream.FilterErr(in, func(s string) (bool, error) { return true, refuse(s) }).Named("op")
		}},
		"behind kept rows": {row: "%s", job: func(in *dstream.DStream[string]) *dstream.DStream[string] {
			twice := dstream.Map(in, self)
			dstream.Print(twice, 1, dstream.Name("other"))
			return dstream.Map(twice, must).Named("op")
		}},
		"behind a partition": {row: "%s", job: func(in *dstream.DStream[string]) *dstream.DStream[string] {
			return dstream.Map(dstream.MapPartitions(in, func(all iter.Seq[string]) iter.Seq[string] { return all }), must).Named("op")
		}},
		"behind a shuffle": {row: "{%[1]s %[1]s}", job: func(in *dstream.DStream[string]) *dstream.DStream[string] {
			return dstream.Map(dstream.PartitionBy(keyed(in), partitioner.Hash[string](3)), func(p dstream.Pair[string, string]) string { return must(p.Key) }).Named("op")
		}},
		"behind a group": {row: "{%[1]s [%[1]s]}", job: func(in *dstream.DStream[string]) *dstream.DStream[string] {
			return dstream.Map(dstream.GroupByKey(keyed(in)), func(p dstream.Pair[string, []string]) string { return must(p.Key) }).Named("op")
		}},
		"Transform": {job: func(in *dstream.DStream[string]) *dstream.DStream[string] {
			return dstream.Transform(in, func(_ time.Time, r *dstream.RDD[string]) (*dstream.RDD[string], error) {
				return rdd.MapErr(r, func(s string) (string, error) { return s, refuse(s) }).Named("op"), nil
			})
		}, row: "%s"}, // its operators are the body's
		"MapWithState": {key: true, job: func(in *dstream.DStream[string]) *dstream.DStream[string] {
			return dstream.MapWithState(keyed(in), dstream.FunctionErr(strict).Named("op").NumPartitions(2)).DStream
		}},
		"Keyed": {key: true, job: func(in *dstream.DStream[string]) *dstream.DStream[string] {
			return dstream.Keyed(keyed(in), "op", func(c *dstream.Call[int, string], k string, _ dstream.Option[string]) error {
				c.State.Update(1)
				c.Emit(k)
				return refuse(k)
			}).DStream
		}},
		"UpdateStateByKey": {key: true, job: func(in *dstream.DStream[string]) *dstream.DStream[string] {
			all := dstream.UpdateStateByKey(keyed(in), func(vs []string, _ dstream.Option[int]) dstream.Option[int] {
				for _, v := range vs {
					must(v)
				}
				return dstream.Some(1)
			}, dstream.Name("op"))
			return dstream.Map(all, func(p dstream.Pair[string, int]) string { return p.Key })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			src := newScript(2, []string{"a", "bad", "b", "boom", "c", "d"})
			r := newRig(t, time.Second, func(c ssc) error {
				in := dstream.From(c, "in", src)
				dstream.Print(tc.job(in), 10, dstream.Name("out"))
				dstream.ForeachDeadLetter(in, noLetter)
				return nil
			}).start().tick(1)
			require.Equal(t, [][]string{{"a", "b", "c", "d"}}, sorted[string](r, "out"))
			got := out[letter](r, "in dead letters")
			want := []string{"in/0@1 bad op: bad one", "in/1@0 boom op: panic: boom"}
			for i, k := range []string{"bad", "boom"} {
				want[i] = strings.ReplaceAll(want[i], "panic: bad", "bad")
				if tc.key {
					want[i] += " key " + k
				}
				if tc.row != "" {
					want[i] += " row " + fmt.Sprintf(tc.row, k)
				}
				require.Len(t, got[0], 2)
				require.Equal(t, dstream.Batch{Epoch: 1, Time: zero.Add(time.Second)}, got[0][i].Batch)
			}
			texts := told(got[0])
			for i := range texts { // must panics for both
				texts[i] = strings.ReplaceAll(texts[i], "panic: bad", "bad")
			}
			require.Equal(t, want, texts)
			require.ErrorIs(t, got[0][0].Err, errBad)
			var p *rdd.PanicError
			require.ErrorAs(t, got[0][1].Err, &p)
			require.NotEmpty(t, p.Stack)
			progress := r.last()
			require.EqualValues(t, 2, progress.DeadLetters)
			require.EqualValues(t, 2, progress.Sources[0].DeadLetters)
			require.Zero(t, progress.SkippedRecords)
			if tc.key {
				require.EqualValues(t, 2, progress.Operators[0].Skipped)
				require.EqualValues(t, 4, progress.Operators[0].Keys)
			}
			r.tick(1)
			require.Empty(t, out[letter](r, "in dead letters")[1], "a letter comes once")
			require.Zero(t, r.last().DeadLetters)
		})
	}
}

// A call for no record, that of a key which times out, is a letter without one.
func TestLetterOfTimeout(t *testing.T) {
	r := newRig(t, time.Second, func(c ssc) error {
		in := dstream.From(c, "in", newScript(1, []string{"a", "late"}))
		pairs := dstream.MapPair(in, func(s string) (string, string) { return s, s })
		outputs(dstream.MapWithState(pairs, dstream.Function(func(k string, _ dstream.Option[string], s *dstream.State[int]) int {
			if s.IsTimingOut() {
				if k == "late" {
					panic("too late")
				}
				return -1
			}
			s.Update(1)
			return 1
		}).Named("op").Timeout(time.Second).NumPartitions(1)))
		dstream.ForeachDeadLetter(in, noLetter)
		return nil
	}).start().tick(3)
	require.Equal(t, [][]int{{1, 1}, {}, {-1}}, out[int](r, "mapped"))
	require.Equal(t, []string{"/@0 - op: panic: too late key late"}, told(out[letter](r, "in dead letters")[2]))
	require.EqualValues(t, 1, r.last().DeadLetters)
	require.Empty(t, stateOf[string, int](r, "op"))
}

// Rows of a window that an earlier batch had read keep their place; their records are not
// asked for again.
func TestLetterOfWindow(t *testing.T) {
	r := newRig(t, time.Second, func(c ssc) error {
		in := dstream.From(c, "in", newScript(1, []string{"a", "bad"}, []string{"b"}))
		dstream.Print(dstream.Map(dstream.Window(in, 2*time.Second, time.Second), must).Named("op"), 10, dstream.Name("out"))
		dstream.ForeachDeadLetter(in, noLetter)
		return nil
	}).start().tick(2)
	require.Equal(t, [][]string{{"a"}, {"a", "b"}}, out[string](r, "out"))
	got := out[letter](r, "in dead letters")
	require.Equal(t, []string{"in/0@1 bad op: panic: bad one row bad"}, told(got[0]))
	require.Equal(t, []string{"in/0@1 - op: panic: bad one row bad"}, told(got[1]))
}

// Each source has its own letters; a source without some has the context's policy.
func TestLettersOfTwoSources(t *testing.T) {
	job := func(both bool) dstream.Job {
		return func(c ssc) error {
			one := dstream.From(c, "one", newScript(1, []string{"a", "bad"}))
			two := dstream.From(c, "two", newScript(1, []string{"badly", "b"}))
			dstream.Print(dstream.Map(dstream.Union(one, two), must).Named("op"), 10, dstream.Name("out"))
			dstream.ForeachDeadLetter(one, noLetter)
			if both {
				dstream.ForeachDeadLetter(two, noLetter)
			}
			return nil
		}
	}
	r := newRig(t, time.Second, job(true)).start().tick(1)
	require.Equal(t, [][]string{{"a", "b"}}, out[string](r, "out"))
	require.Equal(t, []string{"one/0@1 bad op: panic: bad one"}, told(out[letter](r, "one dead letters")[0]))
	require.Equal(t, []string{"two/0@0 badly op: panic: bad one"}, told(out[letter](r, "two dead letters")[0]))

	r = newRig(t, time.Second, job(false)).start()
	require.Error(t, r.tryTick())
	var at *rdd.RecordError
	require.ErrorAs(t, r.end(), &at)
	require.Equal(t, "two", at.Stream)
}

// flaky is a source whose reads of some numbers, counted from 1, break off behind two
// records.
type flaky struct {
	*script[string]
	breaks map[int]bool
	reads  int
}

func (f *flaky) Read(ctx context.Context, r source.Range, emit func(int64, string) error) error {
	f.reads++
	left := 2
	return f.script.Read(ctx, r, func(offset int64, v string) error {
		if left--; left < 0 && f.breaks[f.reads] {
			return errors.New("the line is cut")
		}
		return emit(offset, v)
	})
}

// What a failed attempt of a partition had left out is forgotten with it, and a record
// that is asked for again is read until it is there.
func TestLettersOfAttempts(t *testing.T) {
	src := &flaky{script: newScript(1, []string{"bad", "a", "boom", "b", "badly"}), breaks: map[int]bool{2: true, 3: true, 5: true}}
	r := newRig(t, time.Second, func(c ssc) error {
		in := dstream.From[string](c, "in", src)
		pairs := dstream.MapPairErr(in, func(s string) (string, int, error) {
			if s == "badly" {
				return s, 1, nil
			}
			return s, 1, refuse(s)
		}).Named("parse")
		mapped := dstream.MapWithState(pairs, dstream.FunctionErr(func(_ time.Time, k string, _ dstream.Option[int], s *dstream.State[int]) (string, bool, error) {
			s.Update(1)
			return k, true, refuse(k)
		}).Named("op").NumPartitions(2))
		dstream.Print(mapped, 10, dstream.Name("out"))
		dstream.ForeachDeadLetter(in, noLetter)
		return nil
	}).start().tick(1)
	require.Equal(t, [][]string{{"a", "b"}}, sorted[string](r, "out"))
	require.Equal(t, []string{"in/0@0 bad parse: bad one", "in/0@2 boom parse: panic: boom", "in/0@4 badly op: bad one key badly"},
		told(out[letter](r, "in dead letters")[0]))
	// Not guarded, two cut, guarded; the one behind the shuffle: one cut, one whole.
	require.Equal(t, 6, src.reads)
}

// What an attempt of an output has left out is forgotten if the output fails.
func TestLettersOfOutputAttempts(t *testing.T) {
	fails := 2
	r := newRig(t, time.Second, func(c ssc) error {
		in := dstream.From(c, "in", newScript(1, []string{"a", "bad"}))
		dstream.ForeachRDD(in, func(ctx context.Context, _ dstream.Batch, r *dstream.RDD[string]) error {
			_, err := rdd.Collect(ctx, rdd.MapErr(r, func(s string) (string, error) { return s, refuse(s) }).Named("body"))
			if fails > 0 {
				fails--
				err = errors.New("too late")
			}
			return err
		}, dstream.Name("out"))
		dstream.ForeachDeadLetter(in, noLetter)
		return nil
	}, dstream.WithTaskRetries(2)).start().tick(1)
	require.Zero(t, fails)
	require.Equal(t, []string{"in/0@1 bad body: bad one row bad"}, told(out[letter](r, "in dead letters")[0]))
}

// Report 30: while the letters cannot be delivered, nothing of the batch is committed.
func TestLettersThatCannotBeDelivered(t *testing.T) {
	src := newScript(1, []string{"a"}, []string{"a", "bad"})
	calls := 0
	r := newRig(t, time.Second, func(c ssc) error {
		in := dstream.From(c, "in", src)
		pairs := dstream.MapPairErr(in, func(s string) (string, int, error) { return s, 1, refuse(s) })
		outputs(dstream.MapWithState(pairs, dstream.Function(count).Named("count")))
		dstream.ForeachDeadLetter(in, func(context.Context, dstream.Batch, letter) error {
			calls++
			return errors.New("no post today")
		}, dstream.Name("dead"))
		return nil
	}, dstream.WithTaskRetries(1)).start().tick(1)
	require.Error(t, r.tryTick())
	var e *dstream.BatchError
	err := r.end()
	require.ErrorAs(t, err, &e)
	require.Equal(t, "dead", e.Name)
	require.ErrorContains(t, err, "no post today")
	require.Equal(t, 2, calls)
	require.Len(t, src.committed, 1)
	require.Equal(t, map[string]int{"a": 1}, stateOf[string, int](r, "count"))
}

// Metamorphic: other partitions, workers and sources give the same letters.
func TestLettersDoNotDependOnPartitions(t *testing.T) {
	var batch []string
	for i := range 60 {
		batch = append(batch, strconv.Itoa(i))
	}
	var first []string
	for _, parts := range []int{1, 2, 3, 7} {
		r := newRig(t, time.Second, func(c ssc) error {
			in := dstream.From(c, "in", newScript(1, batch))
			pairs := dstream.MapPairErr(in, func(s string) (int, int, error) {
				n, _ := strconv.Atoi(s)
				if n%5 == 0 {
					return 0, 0, fmt.Errorf("%d is a multiple of 5", n)
				}
				return n % 11, n, nil
			}).Named("parse")
			mapped := dstream.MapWithState(pairs, dstream.Function(func(k int, n dstream.Option[int], s *dstream.State[int]) dstream.Pair[int, int] {
				s.Update(s.OrElse(0) + n.OrElse(0))
				if n.OrElse(0)%7 == 0 {
					panic(fmt.Sprint(n.OrElse(0), " is a multiple of 7"))
				}
				return dstream.KV(k, s.Get())
			}).Named("sum").NumPartitions(parts))
			dstream.Print(dstream.Map(mapped, func(p dstream.Pair[int, int]) string {
				if p.Value%13 == 0 {
					panic(fmt.Sprint(p, " is a multiple of 13"))
				}
				return ""
			}).Named("thirteen"), 1, dstream.Name("out"))
			dstream.ForeachDeadLetter(in, noLetter)
			return nil
		}, dstream.WithParallelism(parts)).start().tick(1)
		letters := out[letter](r, "in dead letters")[0]
		require.True(t, slices.IsSortedFunc(letters, func(a, b letter) int { return cmp.Compare(a.Offset, b.Offset) }))
		got := told(letters)
		if first == nil {
			first = got
			require.Greater(t, len(first), 20)
			for _, op := range []string{"parse", "sum", "thirteen"} {
				require.Contains(t, strings.Join(first, "\n"), " "+op+":")
			}
		}
		require.Equal(t, first, got, "%d partitions", parts)
	}
}
