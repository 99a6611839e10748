package sourcetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// patience bounds the wait for a source that reads in the background.
const patience = 30 * time.Second

// run is a subtest's engine: it plans, reads and commits as the real one does.
type run[T any] struct {
	*testing.T
	ctx   context.Context
	c     Case[T]
	open  func(t *testing.T) Case[T]
	src   source.Source[T]
	epoch uint64
	until map[at]int64
	end   int64 // with Together: of the last plan
	last  *source.Plan
}

// at names a partition's history.
type at struct{ partition, epoch string }

func (r *run[T]) start(last *source.Plan) {
	require.NoError(r, r.src.Open(r.ctx, last))
	r.until, r.end = map[at]int64{}, -1
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
		before, ok := r.until[at{x.Partition, x.Epoch}]
		if r.c.Together {
			before, ok = r.end, r.end >= 0
			r.end = x.Until
		}
		if ok {
			require.Equal(r, before, x.From, "partition %q begins where the plan before ended", x.Partition)
		}
		r.until[at{x.Partition, x.Epoch}] = x.Until
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
