package sourcetest

import (
	"context"
	"errors"

	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

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

func limitOfBytes[T any](r *run[T]) {
	if r.c.Size == nil {
		r.Skip("records have no size")
	}
	sum, most := int64(0), int64(0)
	for _, v := range r.c.Want {
		sum, most = sum+r.c.Size(v), max(most, r.c.Size(v))
	}
	r.start(nil)
	var out []T
	for i := 0; len(out) < len(r.c.Want); i++ {
		l := []source.Limits{{Bytes: 1}, {Bytes: sum / 4}, {Bytes: most, Records: 3}, {Bytes: most + 1, PerPartition: 2}}[i%4]
		_, got := r.planSome(l)
		n, bytes := 0, int64(0)
		for _, g := range got {
			n += len(g)
			for _, v := range g {
				bytes += r.c.Size(v)
			}
			out = append(out, g...)
		}
		allowed := l.Bytes
		if r.c.Judged {
			allowed += allowed / 2
		}
		if n > 1 { // one always goes
			require.LessOrEqual(r, bytes, allowed, "%d records, by %+v", n, l)
		}
		if l.Records > 0 {
			require.LessOrEqual(r, int64(n), l.Records)
		}
		r.commit(*r.last)
	}
	r.equal(r.c.Want, out)
}

func negativeLimit[T any](r *run[T]) {
	r.start(nil)
	for _, l := range []source.Limits{{Records: -1}, {PerPartition: -1}, {Bytes: -1}, {Records: 5, Bytes: -1}} {
		p := r.plan(l)
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
