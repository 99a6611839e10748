package staterdd

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/rdd"
)

func at(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// fixture drives one operator as a run does: advance, materialize, seal, release the version
// before.
type fixture[K comparable, V, S, M any] struct {
	t     testing.TB
	op    *Operator[K, V, S, M]
	cur   *MapWithStateRDD[K, S, M]
	exec  rdd.Executor
	epoch uint64
	parts int // source partitions of the data
}

func start[K comparable, V, S, M any](t testing.TB, spec Spec[K, V, S, M], o Options, first int64) *fixture[K, V, S, M] {
	t.Helper()
	op, err := NewOperator(spec, o)
	require.NoError(t, err)
	cur, err := op.Initial(at(first))
	require.NoError(t, err)
	return &fixture[K, V, S, M]{t: t, op: op, cur: cur, exec: rdd.Local(2, nil), parts: 2}
}

func (f *fixture[K, V, S, M]) shuffle(data []rdd.Pair[K, V]) *rdd.Shuffled[K, V] {
	return rdd.Shuffle(rdd.Parallelize(data, f.parts).Named("in"), f.op.Partitioner())
}

// next advances without sealing.
func (f *fixture[K, V, S, M]) next(ns int64, data ...rdd.Pair[K, V]) (*MapWithStateRDD[K, S, M], error) {
	f.t.Helper()
	next, stage, err := f.op.Advance(f.cur, f.shuffle(data), Batch{Epoch: f.epoch + 1, Time: at(ns)})
	require.NoError(f.t, err)
	return next, rdd.Materialize(context.Background(), f.exec, stage)
}

// batch runs and seals one batch and gives its outputs.
func (f *fixture[K, V, S, M]) batch(ns int64, data ...rdd.Pair[K, V]) []M {
	f.t.Helper()
	next, err := f.next(ns, data...)
	require.NoError(f.t, err)
	require.NoError(f.t, next.Seal())
	f.cur.Release()
	f.cur = next
	f.epoch++
	return mappedOf(f.t, next)
}

func mappedOf[K comparable, S, M any](t testing.TB, r *MapWithStateRDD[K, S, M]) []M {
	t.Helper()
	out, err := rdd.Collect(context.Background(), r.Mapped())
	require.NoError(t, err)
	return out
}

// st is a state with its time.
type st[S any] struct {
	State S
	Time  int64
}

func timesOf[K comparable, S, M any](t testing.TB, r *MapWithStateRDD[K, S, M]) map[K]st[S] {
	t.Helper()
	all, err := rdd.Collect(context.Background(), r.StateTimes())
	require.NoError(t, err)
	out := map[K]st[S]{}
	for _, e := range all {
		_, twice := out[e.Key]
		require.False(t, twice, "key %v is there twice", e.Key)
		out[e.Key] = st[S]{e.State, e.Time}
	}
	return out
}

func snapshotOf[K comparable, S, M any](t testing.TB, r *MapWithStateRDD[K, S, M]) map[K]S {
	t.Helper()
	all, err := rdd.Collect(context.Background(), r.Snapshots())
	require.NoError(t, err)
	out := map[K]S{}
	for _, e := range all {
		out[e.Key] = e.Value
	}
	return out
}

func kv[K comparable, V any](k K, v V) rdd.Pair[K, V] { return rdd.KV(k, v) }
