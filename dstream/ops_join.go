package dstream

import (
	"errors"

	"github.com/statemill/statemill/rdd"
)

// Joined is a pair of values of one key, one of each side.
type Joined[L, R any] = rdd.Joined[L, R]

// Grouped holds all values of one key of both sides.
type Grouped[L, R any] = rdd.Grouped[L, R]

// Join pairs, in each batch, every value of a key in a with every value of it
// in b: keys in the order in which a first has them, the values of a in their
// order, for each of them those of b. A side that lies by the operator's
// partitioner already is not moved; a Constant one is moved once.
func Join[K comparable, V, W any](a Stream[Pair[K, V]], b Stream[Pair[K, W]], opts ...OpOption) *DStream[Pair[K, Joined[V, W]]] {
	return zip(a, b, "Join", opts, rdd.Join[K, V, W])
}

// LeftOuterJoin is Join which has the values of keys that b lacks too.
func LeftOuterJoin[K comparable, V, W any](a Stream[Pair[K, V]], b Stream[Pair[K, W]], opts ...OpOption) *DStream[Pair[K, Joined[V, Option[W]]]] {
	return zip(a, b, "LeftOuterJoin", opts, rdd.LeftOuterJoin[K, V, W])
}

// RightOuterJoin is Join which has the values of keys that a lacks too, after
// all others.
func RightOuterJoin[K comparable, V, W any](a Stream[Pair[K, V]], b Stream[Pair[K, W]], opts ...OpOption) *DStream[Pair[K, Joined[Option[V], W]]] {
	return zip(a, b, "RightOuterJoin", opts, rdd.RightOuterJoin[K, V, W])
}

// FullOuterJoin is Join which has the values of keys that either side lacks too;
// keys that only b has come after all others.
func FullOuterJoin[K comparable, V, W any](a Stream[Pair[K, V]], b Stream[Pair[K, W]], opts ...OpOption) *DStream[Pair[K, Joined[Option[V], Option[W]]]] {
	return zip(a, b, "FullOuterJoin", opts, rdd.FullOuterJoin[K, V, W])
}

// Cogroup gathers, in each batch, the values of each key of both streams. The
// keys of a come first, in first-seen order, then those that only b has.
func Cogroup[K comparable, V, W any](a Stream[Pair[K, V]], b Stream[Pair[K, W]], opts ...OpOption) *DStream[Pair[K, Grouped[V, W]]] {
	return zip(a, b, "Cogroup", opts, rdd.Cogroup[K, V, W])
}

// SubtractByKey gives the records of a whose key is not in the same batch of b.
// Within a partition they stay in their order.
func SubtractByKey[K comparable, V, W any](a Stream[Pair[K, V]], b Stream[Pair[K, W]], opts ...OpOption) *DStream[Pair[K, V]] {
	return zip(a, b, "SubtractByKey", opts, rdd.SubtractByKey[K, V, W])
}

// zip adds a stream of two parents that are laid out by one partitioner.
func zip[K comparable, V, W, U any](a Stream[Pair[K, V]], b Stream[Pair[K, W]], kind string, opts []OpOption,
	f func(a *rdd.RDD[Pair[K, V]], b *rdd.RDD[Pair[K, W]], p Partitioner[K]) *rdd.RDD[U],
) *DStream[U] {
	left, right := &side[K, V]{parent: nodeOf(a)}, &side[K, W]{parent: nodeOf(b)}
	n := newNode(nil, kind, left.parent, right.parent)
	by, faults := byKey[K](n, kind, opts)
	n.check(faults...)
	return bind(n, func(b *batchRun) (*rdd.RDD[U], error) {
		p := by(b)
		l, lerr := left.lay(b, n, p)
		r, rerr := right.lay(b, n, p)
		if err := errors.Join(lerr, rerr); err != nil {
			return nil, err
		}
		return f(l, r, p).Named(n.label()), nil
	})
}

// side is one input of an operator that needs it laid out by its partitioner.
type side[K comparable, V any] struct {
	parent *node
	once   *rdd.RDD[Pair[K, V]] // of a parent that gives the same in every batch
}

// lay gives the parent's RDD of the batch laid out by p. The batch owns what is
// moved for that.
func (s *side[K, V]) lay(b *batchRun, n *node, p Partitioner[K]) (*rdd.RDD[Pair[K, V]], error) {
	if s.once != nil {
		return s.once, nil
	}
	r, err := rddOf[Pair[K, V]](b, s.parent)
	if err != nil || rdd.LiesBy(r, p) {
		return r, err
	}
	laid := rdd.PartitionBy(rdd.Within(r, n.label()), p)
	if s.parent.constant {
		s.once = laid // for the run: a context runs once
		return laid, laid.Err()
	}
	return own(b, n, laid), laid.Err()
}
