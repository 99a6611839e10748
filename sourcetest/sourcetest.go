// Package sourcetest is the acceptance suite of [source.Source]: every source,
// ours or a user's, must pass [Run]. It checks the contract in package source's
// comment, one subtest a rule, through the interface alone.
//
// It does not test what a source is connected to: faults of networks and files
// are the source's own tests.
package sourcetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// Case is one source with an input of its own.
type Case[T any] struct {
	// Source is new and not opened. The suite opens and closes it.
	Source source.Source[T]
	// Want is every record of the input, at least 8. Order counts only if Ordered.
	Want []T
	// Ordered says that reading the ranges of each plan one after the other gives
	// the records in the order of Want.
	Ordered bool
	// Again returns another source over the same input, as the next run would make
	// it. Nil leaves out what needs a next run.
	Again func() source.Source[T]
	// NotReplayable says that the input cannot be read again: in the source that
	// Again returns, an earlier run's ranges must give source.ErrNotReplayable.
	NotReplayable bool
	// More adds records to the input and returns them. Nil if that cannot be.
	More func() []T
	// Ends says that the source must be Done after Want.
	Ends bool
}

// patience bounds the wait for a source that reads in the background.
const patience = 30 * time.Second

// Run runs the suite. open makes a case anew for each subtest; it registers what
// is to be cleaned up with t.Cleanup.
func Run[T any](t *testing.T, open func(t *testing.T) Case[T]) {
	for name, test := range map[string]func(*run[T]){
		"every record once":               everyRecordOnce[T],
		"same range same records":         sameRange[T],
		"limits":                          limits[T],
		"a negative limit allows nothing": negativeLimit[T],
		"resume from any plan":            resume[T],
		"emit's error ends the read":      emitError[T],
		"cancelled context":               cancelled[T],
		"not open":                        notOpen[T],
		"ranges that were never planned":  badRanges[T],
		"records that come later":         comeLater[T],
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c := open(t)
			require.GreaterOrEqual(t, len(c.Want), 8, "the case needs records")
			r := &run[T]{T: t, ctx: ctx, c: c, src: c.Source, open: open}
			t.Cleanup(func() { _ = c.Source.Close() })
			test(r)
		})
	}
}

// run is a subtest's engine: it plans, reads and commits as the real one does.
type run[T any] struct {
	*testing.T
	ctx   context.Context
	c     Case[T]
	open  func(t *testing.T) Case[T]
	src   source.Source[T]
	epoch uint64
	until map[string]int64
	last  *source.Plan
}

func (r *run[T]) start(last *source.Plan) {
	require.NoError(r, r.src.Open(r.ctx, last))
	r.until = map[string]int64{}
}

// plan asks once and checks the form of the answer.
func (r *run[T]) plan(l source.Limits) source.Plan {
	r.epoch++
	l.Epoch = r.epoch
	p, err := r.src.Plan(r.ctx, l)
	require.NoError(r, err)
	seen := map[string]bool{}
	for _, x := range p.Ranges {
		require.False(r, seen[x.Partition], "partition %q is in the plan twice", x.Partition)
		seen[x.Partition] = true
		require.LessOrEqual(r, x.From, x.Until, "partition %q", x.Partition)
		require.GreaterOrEqual(r, x.From, r.until[x.Partition], "partition %q goes back", x.Partition)
		r.until[x.Partition] = x.Until
	}
	r.last = &p
	return p
}

// planSome asks until the plan has a record or the source is done.
func (r *run[T]) planSome(l source.Limits) (p source.Plan, got [][]T) {
	for {
		p = r.plan(l)
		n := 0
		got = got[:0]
		for _, x := range p.Ranges {
			got = append(got, r.read(x))
			n += len(got[len(got)-1])
		}
		if n > 0 || r.done() {
			return p, got
		}
		r.commit(p)
		if !slices.ContainsFunc(p.Ranges, func(x source.Range) bool { return x.From < x.Until }) {
			r.pause()
		}
	}
}

func (r *run[T]) pause() {
	timer := clock.System().NewTimer(time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-r.ctx.Done():
		require.FailNow(r, "the source gives no more records", "after %v", patience)
	}
}

func (r *run[T]) done() bool {
	b, ok := r.src.(source.Bounded)
	return ok && b.Done()
}

func (r *run[T]) read(x source.Range) []T {
	var out []T
	last := x.From - 1
	require.NoError(r, r.src.Read(r.ctx, x, func(offset int64, v T) error {
		require.Greater(r, offset, last, "offsets grow")
		require.Less(r, offset, x.Until, "offsets lie in the range")
		last = offset
		out = append(out, v)
		return nil
	}), "range %+v", x)
	return out
}

func (r *run[T]) commit(p source.Plan) { require.NoError(r, r.src.Committed(r.ctx, p)) }

// all runs epochs until n records have come, or the source is done.
func (r *run[T]) all(n int, l source.Limits) []T {
	var out []T
	for len(out) < n && !r.done() {
		p, got := r.planSome(l)
		for _, g := range got {
			out = append(out, g...)
		}
		r.commit(p)
	}
	return out
}

func (r *run[T]) equal(want, got []T) {
	if r.c.Ordered {
		require.Equal(r, want, got)
		return
	}
	require.ElementsMatch(r, want, got)
}

func everyRecordOnce[T any](r *run[T]) {
	r.start(nil)
	r.equal(r.c.Want, r.all(len(r.c.Want), source.Limits{}))
	b, bounded := r.src.(source.Bounded)
	if r.c.Ends {
		require.True(r, bounded, "a source that ends offers source.Bounded")
		for !b.Done() { // a reader learns of the end after the last record
			r.commit(r.plan(source.Limits{}))
			r.pause()
		}
	}
	for range 3 {
		p := r.plan(source.Limits{})
		for _, x := range p.Ranges {
			require.Empty(r, r.read(x), "nothing more")
		}
		r.commit(p)
	}
	if bounded {
		require.Equal(r, r.c.Ends, b.Done())
	}
}

func sameRange[T any](r *run[T]) {
	r.start(nil)
	left := len(r.c.Want)
	for left > 0 {
		p, first := r.planSome(source.Limits{Records: 5})
		again := make([][]T, len(p.Ranges))
		failed := make([]error, len(p.Ranges))
		finished := make(chan int)
		for i, x := range p.Ranges { // as the engine's workers do
			go func() {
				failed[i] = r.src.Read(r.ctx, x, func(_ int64, v T) error {
					again[i] = append(again[i], v)
					return nil
				})
				finished <- i
			}()
		}
		for range p.Ranges {
			<-finished
		}
		for i, x := range p.Ranges {
			require.NoError(r, failed[i])
			require.Equal(r, len(first[i]), len(again[i]), "range %+v", x)
			if len(first[i]) > 0 {
				require.Equal(r, first[i], again[i], "range %+v", x)
			}
			left -= len(first[i])
		}
		r.commit(p)
	}
	require.Zero(r, left)
}

func limits[T any](r *run[T]) {
	r.start(nil)
	var out []T
	for i := 0; len(out) < len(r.c.Want); i++ {
		l := []source.Limits{{Records: 1}, {Records: 3}, {PerPartition: 1}, {Records: 2, PerPartition: 1}}[i%4]
		p, got := r.planSome(l)
		n := 0
		for _, g := range got {
			n += len(g)
			if l.PerPartition > 0 {
				require.LessOrEqual(r, int64(len(g)), l.PerPartition)
			}
			out = append(out, g...)
		}
		if l.Records > 0 {
			require.LessOrEqual(r, int64(n), l.Records)
		}
		r.commit(p)
	}
	r.equal(r.c.Want, out)
}

func negativeLimit[T any](r *run[T]) {
	r.start(nil)
	for range 5 {
		p := r.plan(source.Limits{Records: -1})
		for _, x := range p.Ranges {
			require.Empty(r, r.read(x))
		}
		r.commit(p)
	}
	r.equal(r.c.Want, r.all(len(r.c.Want), source.Limits{}))
}

func resume[T any](r *run[T]) {
	if r.c.Again == nil {
		r.Skip("there is no next run")
	}
	r.start(nil)
	var before []T
	for k := 1; len(before) < len(r.c.Want); k++ {
		p, got := r.planSome(source.Limits{Records: 3})
		if k%2 == 0 {
			r.commit(p) // committed or not, the plan is the position
		}
		require.NoError(r, r.src.Close())
		r.src = r.c.Again()
		r.start(&p)
		for i, x := range p.Ranges {
			if r.c.NotReplayable {
				if len(got[i]) > 0 {
					err := r.src.Read(r.ctx, x, func(int64, T) error { return nil })
					require.ErrorIs(r, err, source.ErrNotReplayable)
				}
				continue
			}
			again := r.read(x)
			require.Equal(r, len(got[i]), len(again), "range %+v in the next run", x)
			for j := range again {
				require.Equal(r, got[i][j], again[j])
			}
			before = append(before, again...)
		}
		if r.c.NotReplayable {
			require.NoError(r, r.src.Close())
			return
		}
		r.commit(p)
	}
	r.equal(r.c.Want, before)
	require.NoError(r, r.src.Close())
}

func emitError[T any](r *run[T]) {
	r.start(nil)
	p, got := r.planSome(source.Limits{})
	stop := errors.New("stop")
	for i, x := range p.Ranges {
		if len(got[i]) == 0 {
			continue
		}
		n := 0
		err := r.src.Read(r.ctx, x, func(int64, T) error { n++; return stop })
		require.ErrorIs(r, err, stop)
		require.Equal(r, 1, n, "nothing is emitted after an error")
	}
}

func cancelled[T any](r *run[T]) {
	r.start(nil)
	p, got := r.planSome(source.Limits{})
	dead, cancel := context.WithCancel(r.ctx)
	cancel()
	for i, x := range p.Ranges {
		if len(got[i]) > 0 {
			require.ErrorIs(r, r.src.Read(dead, x, func(int64, T) error { return nil }), context.Canceled)
		}
	}
	_, err := r.src.Plan(dead, source.Limits{})
	require.ErrorIs(r, err, context.Canceled)
	r.commit(p)
	_, err = r.src.Plan(r.ctx, source.Limits{})
	require.NoError(r, err, "a cancelled call changes nothing")
}

func notOpen[T any](r *run[T]) {
	_, err := r.src.Plan(r.ctx, source.Limits{})
	require.Error(r, err, "Plan before Open")
	require.Error(r, r.src.Read(r.ctx, source.Range{}, func(int64, T) error { return nil }), "Read before Open")
	r.start(nil)
	p, _ := r.planSome(source.Limits{})
	require.NoError(r, r.src.Close())
	require.NoError(r, r.src.Close(), "twice")
	_, err = r.src.Plan(r.ctx, source.Limits{})
	require.Error(r, err, "Plan after Close")
	require.Error(r, r.src.Read(r.ctx, p.Ranges[0], func(int64, T) error { return nil }), "Read after Close")
	require.NoError(r, r.open(r.T).Source.Close(), "Close without Open")
}

func badRanges[T any](r *run[T]) {
	r.start(nil)
	p, got := r.planSome(source.Limits{})
	none := func(int64, T) error { return nil }
	for i, x := range p.Ranges {
		if len(got[i]) == 0 {
			continue
		}
		y := x
		y.Until += 1 << 40
		require.Error(r, r.src.Read(r.ctx, y, none), "beyond the end")
		y = x
		y.From, y.Until = x.Until, x.From
		require.Error(r, r.src.Read(r.ctx, y, none), "turned round")
		y = x
		y.From = -5
		require.Error(r, r.src.Read(r.ctx, y, none), "negative")
		y = x
		y.Partition, y.Epoch = "no such partition", "no such epoch"
		require.Error(r, r.src.Read(r.ctx, y, none), "unknown partition")
	}
}

func comeLater[T any](r *run[T]) {
	if r.c.More == nil {
		r.Skip("the input is fixed")
	}
	r.start(nil)
	r.equal(r.c.Want, r.all(len(r.c.Want), source.Limits{}))
	for range 2 {
		more := r.c.More()
		require.NotEmpty(r, more)
		r.equal(more, r.all(len(more), source.Limits{}))
	}
}
