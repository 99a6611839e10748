package dstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// garbage is report 30's job: offset 1 cannot be decoded; the values are
// counted by key.
func garbage(src source.Source[string], bad func(string) (string, int, error)) dstream.Job {
	return func(c ssc) error {
		pairs := dstream.MapPairErr(dstream.From(c, "topic", src), bad).Named("decode")
		outputs(dstream.MapWithState(pairs, dstream.Function(count).Named("count")))
		return nil
	}
}

func decode(s string) (string, int, error) {
	if s == "garbage" {
		return "", 0, errors.New("cannot decode")
	}
	return s, 1, nil
}

func panicking(s string) (string, int, error) {
	if s == "garbage" {
		panic("cannot decode")
	}
	return s, 1, nil
}

// Report 30: fail. The error names operator, partition and offset; nothing of
// the batch is committed.
func TestBadRecordFails(t *testing.T) {
	for name, f := range map[string]func(string) (string, int, error){"error": decode, "panic": panicking} {
		t.Run(name, func(t *testing.T) {
			src := newScript(1, []string{"good"}, []string{"good", "garbage", "fine"})
			r := newRig(t, time.Second, garbage(src, f)).start().tick(1)
			require.Error(t, r.tryTick())
			var rec *rdd.RecordError
			err := r.end()
			require.ErrorAs(t, err, &rec)
			require.Equal(t, "topic", rec.Stream)
			require.Equal(t, "0", rec.Partition)
			require.EqualValues(t, 2, rec.Offset)
			require.ErrorContains(t, err, "cannot decode")
			if name == "error" {
				require.Equal(t, "decode", rec.Operator)
			} else {
				var p *rdd.PanicError
				require.ErrorAs(t, err, &p)
				require.Contains(t, string(p.Stack), "panicking")
			}
			require.Equal(t, map[string]int{"good": 1}, stateOf[string, int](r, "count"))
			require.Len(t, src.committed, 1)
			require.True(t, src.closed)
		})
	}
}

// Report 30: skip. Two outputs, one skipped, the position moves on.
func TestBadRecordIsSkipped(t *testing.T) {
	for name, f := range map[string]func(string) (string, int, error){"error": decode, "panic": panicking} {
		t.Run(name, func(t *testing.T) {
			src := newScript(1, []string{"good", "garbage", "fine"}, []string{"good"})
			r := newRig(t, time.Second, garbage(src, f), dstream.WithRecordPolicy(dstream.Skip)).start().tick(1)
			require.Equal(t, [][]int{{1, 1}}, out[int](r, "mapped"))
			p := r.last()
			require.EqualValues(t, 1, p.SkippedRecords)
			require.EqualValues(t, 1, p.Sources[0].Skipped)
			require.EqualValues(t, 3, p.Sources[0].InputRows)
			require.EqualValues(t, 3, src.committed[0].Ranges[0].Until)
			r.tick(1)
			require.Zero(t, r.last().SkippedRecords)
			require.Equal(t, map[string]int{"good": 2, "fine": 1}, stateOf[string, int](r, "count"))
		})
	}
}

// Report 30, in the stateful function itself: the record leaves no trace, the
// operator counts it.
func TestBadStateRecordIsSkipped(t *testing.T) {
	r := newRig(t, time.Second, func(c ssc) error {
		outputs(dstream.MapWithState(ones(c, [][]string{{"a", "b", "a", "c"}}), dstream.Function(
			func(k string, v dstream.Option[int], s *dstream.State[int]) int {
				s.Update(s.OrElse(0) + 1)
				if k == "b" {
					panic("no b")
				}
				return s.Get()
			}).Named("count")))
		return nil
	}, dstream.WithRecordPolicy(dstream.Skip)).start().tick(1)
	require.Equal(t, map[string]int{"a": 2, "c": 1}, stateOf[string, int](r, "count"))
	require.EqualValues(t, 1, r.last().Operators[0].Skipped)
	require.EqualValues(t, 1, r.last().SkippedRecords)
	require.Equal(t, [][]int{{1, 1, 2}}, sorted[int](r, "mapped"))
}

// A failing function is tried again from the version before: state changed in
// place by the failed attempt is not seen.
func TestTaskRetries(t *testing.T) {
	for retries := range 3 {
		t.Run(fmt.Sprint(retries), func(t *testing.T) {
			fails := int64(2)
			var calls atomic.Int64
			r := newRig(t, time.Second, func(c ssc) error {
				counts := dstream.MapWithState(ones(c, [][]string{{"a", "b"}, {"a", "b", "c"}}), dstream.FunctionErr(
					func(b time.Time, k string, v dstream.Option[int], s *dstream.State[map[string]int]) (string, bool, error) {
						m := s.OrElse(map[string]int{})
						m[k]++
						s.Update(m)
						if b.Equal(zero.Add(2*time.Second)) && k == "b" && calls.Add(1) <= fails {
							return "", false, errors.New("flaky")
						}
						return fmt.Sprint(k, m[k]), true, nil
					}).Named("maps").NumPartitions(1))
				dstream.Print(counts, 1, dstream.Name("mapped"))
				return nil
			}, dstream.WithTaskRetries(retries)).start().tick(1)
			if int64(retries) < fails {
				require.Error(t, r.tryTick())
				require.ErrorContains(t, r.end(), "flaky")
				require.Equal(t, map[string]map[string]int{"a": {"a": 1}, "b": {"b": 1}}, stateOf[string, map[string]int](r, "maps"))
				return
			}
			r.tick(1)
			require.Equal(t, []string{"a2", "b2", "c1"}, out[string](r, "mapped")[1])
		})
	}
}

// I/O of a source is tried again; the retries are counted; records are not.
func TestIORetries(t *testing.T) {
	src := newScript(2, []string{"a", "b", "c", "d"}, []string{"a"})
	src.planFails, src.readFails = 2, 3
	r := newRig(t, time.Second, garbage(src, decode)).start().tick(2)
	require.Equal(t, map[string]int{"a": 2, "b": 1, "c": 1, "d": 1}, stateOf[string, int](r, "count"))
	require.EqualValues(t, 5, r.progress[0].Sources[0].Retries)
	require.EqualValues(t, 4, r.progress[0].InputRows)
	require.Zero(t, r.progress[1].Sources[0].Retries)
}

// I/O that stays broken ends the run with an error that wraps the cause.
func TestIOFails(t *testing.T) {
	for name, c := range map[string]struct {
		src  func(*script[string])
		want string
	}{
		"plan": {func(s *script[string]) { s.planFails = 100 }, "no plan today"},
		"read": {func(s *script[string]) { s.readFails = 100 }, "line is down"},
	} {
		t.Run(name, func(t *testing.T) {
			src := newScript(1, []string{"a", "b"})
			c.src(src)
			r := newRig(t, time.Second, garbage(src, decode)).start()
			require.Error(t, r.tryTick())
			err := r.end()
			var read *dstream.ReadError
			require.ErrorAs(t, err, &read)
			require.Equal(t, "topic", read.Source)
			require.ErrorContains(t, err, c.want)
		})
	}
	t.Run("open", func(t *testing.T) {
		src := newScript[string](1)
		src.openErr = errors.New("no such topic")
		r := newRig(t, time.Second, garbage(src, decode))
		require.ErrorIs(t, r.ssc.Start(), src.openErr)
		require.ErrorIs(t, r.ssc.Start(), dstream.ErrStopped)
	})
	t.Run("injected", func(t *testing.T) {
		r := newRig(t, time.Second, garbage(newScript(1, []string{"a"}), decode))
		r.h.OnRead(func(c harness.ReadCall) error {
			if c.Attempt == 0 {
				return errors.New("injected")
			}
			return nil
		})
		r.h.OnPlan(func(_ string, _ uint64, attempt int) error {
			if attempt < 2 {
				return errors.New("injected")
			}
			return nil
		})
		r.start().tick(1)
		require.EqualValues(t, 3, r.last().Sources[0].Retries)
	})
}

// The pauses between retries follow the context's clock, within the limit.
func TestIORetryWaitsByTheClock(t *testing.T) {
	src := newScript(1, []string{"a"})
	src.planFails = 1000
	r := newRig(t, time.Hour, garbage(src, decode), dstream.WithIORetry(10*time.Second))
	r.h = nil // no harness from here on: it would not wait
	c := dstream.New(time.Hour, dstream.WithClock(r.clock), dstream.WithIORetry(10*time.Second), dstream.WithOutput(discard{}))
	require.NoError(t, garbage(src, decode)(c))
	require.NoError(t, c.Start())
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(t, r.clock.BlockUntil(ctx, 1))
	r.clock.Advance(time.Hour)
	began := r.clock.Now()
	for range 8 { // 50+100+200+400+800+1600+3200+3650 ms
		require.NoError(t, r.clock.BlockUntil(ctx, 2)) // the driver's and the pause's
		r.clock.Advance(5 * time.Second)
		if r.clock.Now().Sub(began) >= 10*time.Second {
			break
		}
	}
	require.ErrorContains(t, c.Wait(), "no plan today")
	require.LessOrEqual(t, r.clock.Now().Sub(began), 10*time.Second)
}

// Report 24: a source redelivers 40..60 after 100 was processed: they reach no
// function and are counted. Report 25: gaps pass, and are counted.
func TestDuplicatesAndGaps(t *testing.T) {
	rows := func(from, until int64) (all []record[string]) {
		for o := from; o < until; o++ {
			all = append(all, record[string]{o, "a"})
		}
		return all
	}
	part := func(from, until int64, epoch string) source.Range {
		return source.Range{Partition: "p", From: from, Until: until, Epoch: epoch}
	}
	src := explicitly(
		scripted[string]{part(0, 101, ""), rows(0, 101)},
		scripted[string]{part(40, 61, ""), rows(40, 61)},
		scripted[string]{part(101, 110, ""), append(rows(99, 103), rows(105, 110)...)},
		scripted[string]{part(115, 120, ""), rows(117, 119)},
		scripted[string]{part(0, 5, "another topic id"), rows(0, 5)},
	)
	r := newRig(t, time.Second, garbage(src, decode)).start().tick(5)
	type counts struct{ rows, duplicates, gaps int64 }
	var got []counts
	for _, p := range r.progress {
		s := p.Sources[0]
		got = append(got, counts{s.InputRows, s.Duplicates, s.Gaps})
	}
	require.Equal(t, []counts{{101, 0, 0}, {0, 21, 0}, {7, 2, 2}, {2, 0, 5 + 2}, {5, 0, 0}}, got)
	require.Equal(t, map[string]int{"a": 101 + 7 + 2 + 5}, stateOf[string, int](r, "count"))
}

// A source's plan that contradicts itself is its failure.
func TestBadPlan(t *testing.T) {
	src := explicitly(scripted[string]{source.Range{Partition: "p", From: 5, Until: 4}, nil})
	r := newRig(t, time.Second, garbage(src, decode), dstream.WithIORetry(0)).start()
	require.Error(t, r.tryTick())
	require.ErrorContains(t, r.end(), `partition "p" end at offset 4, before its begin at 5`)
}

// A panic of an output, a listener or a Transform is an error of the run.
func TestPanicsOnTheDriver(t *testing.T) {
	for name, c := range map[string]struct {
		job  func(in *dstream.DStream[int])
		opts []dstream.ContextOption
	}{
		"output": {func(in *dstream.DStream[int]) {
			dstream.ForeachRDD(in, func(context.Context, dstream.Batch, *dstream.RDD[int]) error { panic("boom") })
		}, nil},
		"foreach": {func(in *dstream.DStream[int]) {
			dstream.Foreach(in, func(context.Context, dstream.Batch, int) error { panic("boom") })
		}, nil},
		"transform": {func(in *dstream.DStream[int]) {
			dstream.Print(dstream.Transform(in, func(time.Time, *dstream.RDD[int]) (*dstream.RDD[int], error) { panic("boom") }), 1)
		}, nil},
		"listener": {func(in *dstream.DStream[int]) { dstream.Print(in, 1) }, []dstream.ContextOption{
			dstream.WithListener(dstream.Listener{BatchStarted: func(dstream.Batch) { panic("boom") }})}},
		"completed": {func(in *dstream.DStream[int]) { dstream.Print(in, 1) }, []dstream.ContextOption{
			dstream.WithListener(dstream.Listener{BatchCompleted: func(dstream.Progress) { panic("boom") }})}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, time.Second, func(s ssc) error { c.job(numbers(s)); return nil }, c.opts...).start()
			require.Error(t, r.tryTick())
			var p *rdd.PanicError
			require.ErrorAs(t, r.end(), &p)
			require.True(t, strings.Contains(fmt.Sprint(p.Value), "boom"))
		})
	}
}

// Report 36: the cap holds from the first batch on.
func TestMaxRecordsPerBatch(t *testing.T) {
	batch := make([]string, 10)
	for i := range batch {
		batch[i] = "a"
	}
	r := newRig(t, time.Second, garbage(queueOf(4, batch), decode), dstream.WithMaxRecordsPerBatch(3)).start().tick(4)
	for i, want := range []int64{3, 3, 3, 1} {
		require.Equal(t, want, r.progress[i].InputRows)
	}
	r = newRig(t, time.Second, garbage(queueOf(2, batch), decode), dstream.WithMaxRatePerPartition(2)).start().tick(3)
	for i, want := range []int64{4, 4, 2} {
		require.Equal(t, want, r.progress[i].InputRows)
	}
	require.NoError(t, newRig(t, time.Second, garbage(queueOf(4, batch), decode), dstream.WithMaxRecordsPerBatch(dstream.Unlimited)).ssc.Validate())
}

func queueOf(partitions int, batches ...[]string) source.Source[string] {
	return source.NewQueue(partitions, batches...)
}
