package staterdd

import (
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/statemap"
)

// The datasets below read a sealed version. No lock is held while their consumers run, so a
// function of the operator's next batch may read them too (R8).

// Mapped is the outputs of the batch. The dataset may be read any number of times (R3).
func (r *MapWithStateRDD[K, S, M]) Mapped() *rdd.RDD[M] {
	return view(r, r.mapped, r.name, func(t *rdd.Task, rec *Record[K, S, M], emit func(M) error) error {
		offset := int64(0)
		for _, chunk := range rec.Mapped {
			if err := cancelled(t); err != nil {
				return err
			}
			for i := range chunk {
				t.Origin.Offset = offset
				offset++
				if err := emit(chunk[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Snapshots is the state after the batch, all live keys, in the order of their canonical bytes.
// States are shared with the operator: they must not be changed.
func (r *MapWithStateRDD[K, S, M]) Snapshots() *rdd.RDD[rdd.Pair[K, S]] {
	return view(r, r.state, r.name+" snapshots", func(t *rdd.Task, rec *Record[K, S, M], emit func(rdd.Pair[K, S]) error) error {
		return r.entries(t, rec, func(k K, e statemap.Entry[S]) error {
			if r.keyed {
				if _, _, hasState := UnpackDeadline(e.Time); !hasState {
					return nil
				}
			}
			return emit(rdd.KV(k, e.State))
		})
	}).WithPartitioner(r.partitioner)
}

// StateTimes is Snapshots, in the same order, with the update times, or all entries of a keyed operator with their
// deadlines, those without state too.
func (r *MapWithStateRDD[K, S, M]) StateTimes() *rdd.RDD[Timed[K, S]] {
	return view(r, r.state, r.name+" state times", func(t *rdd.Task, rec *Record[K, S, M], emit func(Timed[K, S]) error) error {
		return r.entries(t, rec, func(k K, e statemap.Entry[S]) error {
			return emit(Timed[K, S]{Key: k, State: e.State, Time: e.Time})
		})
	})
}

// Get gives the state of a key in this version.
func (r *MapWithStateRDD[K, S, M]) Get(k K) (s S, ok bool, err error) {
	if err := r.readable(r.state); err != nil {
		return s, false, err
	}
	defer r.state.Leave()
	i, err := partitioner.Of(r.partitioner, k)
	if err != nil {
		return s, false, err
	}
	s, t, ok, err := r.records[i].StateMap.Lookup(k)
	if ok && r.keyed {
		_, _, ok = UnpackDeadline(t)
	}
	return s, ok, err
}

// readable begins a read of a sealed version; the caller ends it by life.Leave. The outputs of
// the batch can be read as soon as the stage has made all of them: another operator of the same
// epoch may take them as its data, and the two are sealed together.
func (r *MapWithStateRDD[K, S, M]) readable(life *rdd.Life) error {
	if err := life.Enter(); err != nil {
		return err
	}
	if !r.Sealed() && !(life == r.mapped && r.complete()) {
		life.Leave()
		return r.fault(ErrNotSealed)
	}
	return nil
}

// complete reports whether all partitions of a version that is being built have succeeded.
func (r *MapWithStateRDD[K, S, M]) complete() bool {
	if r.status.Load() != building {
		return false
	}
	for i := range r.done {
		if !r.done[i].Load() {
			return false
		}
	}
	return true
}

// entries streams the live entries of a partition. Their order in the map tells how it came to
// be: after a reload it is another one, and what an epoch that is redone writes would differ.
func (r *MapWithStateRDD[K, S, M]) entries(t *rdd.Task, rec *Record[K, S, M], f func(K, statemap.Entry[S]) error) error {
	key, err := codec.KeyFor[K]()
	if err != nil {
		return r.fault(err)
	}
	all := rec.StateMap.Sorted(key.Compare)
	if sabotage.On("snapshot-order") {
		all = rec.StateMap.All()
	}
	n, offset := 0, int64(0)
	for k, e := range all {
		if n++; n == largeChunk {
			n = 0
			if err := cancelled(t); err != nil {
				return err
			}
		}
		t.Origin.Offset = offset
		offset++
		if err := f(k, e); err != nil {
			return err
		}
	}
	return rec.StateMap.Err()
}

// view makes a dataset over the records that holds what it reads while it reads, and that
// pins hold through life.
func view[K comparable, S, M, T any](r *MapWithStateRDD[K, S, M], life *rdd.Life, name string, read func(t *rdd.Task, rec *Record[K, S, M], emit func(T) error) error) *rdd.RDD[T] {
	out := rdd.New(len(r.records), func(t *rdd.Task, emit func(T) error) error {
		if err := r.readable(life); err != nil {
			return err
		}
		defer life.Leave()
		t.Origin = rdd.Origin{Stream: name}
		return read(t, &r.records[t.Partition], emit)
	}).Named(name).WithResource(life)
	if r.stage != nil {
		out = out.WithDeps(r.stage)
	}
	if r.exec != nil {
		out = out.WithExecutor(r.exec)
	}
	return out
}
