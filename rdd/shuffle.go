package rdd

import (
	"fmt"

	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/partitioner"
)

// Shuffled is a dataset laid out anew by key: row blocks for each target
// partition, those of source partition 0 first, then 1, …, each in its order.
type Shuffled[K comparable, V any] struct {
	p     partitioner.Partitioner[K]
	stage *Stage
	store *store[Rows[K, V]]
	rdd   *RDD[Pair[K, V]]
	err   error
}

// Shuffle lays r out by p. The work is done by its Stage. A bad partitioner or
// a key type without a canonical encoding is the error of the stage and of every use.
func Shuffle[K comparable, V any](r *RDD[Pair[K, V]], p partitioner.Partitioner[K]) *Shuffled[K, V] {
	return layOut(r, labelOf(r, "partitionBy"), p)
}

func layOut[K comparable, V any](r *RDD[Pair[K, V]], l *label, p partitioner.Partitioner[K]) *Shuffled[K, V] {
	return shuffle(r, l, p, func(t *Task, w *rowWriter[K, V]) error {
		return r.push(t, w.source, l, w.emitter())
	})
}

// shuffle makes the stage whose task fill pushes a source's rows into the writer. l names
// the step that it is for.
func shuffle[K comparable, V any, T any](r *RDD[T], l *label, p partitioner.Partitioner[K], fill func(t *Task, w *rowWriter[K, V]) error) *Shuffled[K, V] {
	s := &Shuffled[K, V]{p: p}
	var k *keyed[K]
	name := l.operator()
	if s.err = faultOf(r, name); s.err == nil {
		k, s.err = newKeyed(p)
	}
	if s.err != nil {
		s.err = fmt.Errorf("%s: %w", name, s.err)
		err := s.err
		s.stage = NewStage(StageConfig{Name: name, Tasks: 1, Run: func(*Task) error { return err }})
		s.rdd = failed[Pair[K, V]](err)
		return s
	}
	store := newStore(name, r.n, p.Partitions(), rowsReset[K, V]())
	s.store = store
	s.stage = store.stage(name, r.deps, func(t *Task) error {
		w := newRowWriter(t, store, t.Partition, k, l)
		defer w.close()
		err := fill(t, w)
		w.done = err == nil
		return err
	})
	s.rdd = leaf(p.Partitions(), name, func(t *Task, target int, emit func(Pair[K, V]) error) error {
		return s.Read(t, target, func(b *Rows[K, V]) error {
			for i := range b.N {
				b.At(t, i)
				j := i & (blockRows - 1)
				if err := emit(Pair[K, V]{b.Key[j], b.Value[j]}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	s.rdd.label, s.rdd.within, s.rdd.part, s.rdd.exec = l, r.within, p, r.exec
	s.rdd.deps, s.rdd.res = []*Stage{s.stage}, []Resource{store.life}
	return s
}

// Read gives the blocks of a target partition to f in order, and holds them
// meanwhile. It fails with ErrReleased after the release, and if the stage is not complete.
func (s *Shuffled[K, V]) Read(t *Task, target int, f func(*Rows[K, V]) error) error {
	if s.err != nil {
		return s.err
	}
	blocks, err := s.store.enter(target)
	if err != nil {
		return err
	}
	defer s.store.life.Leave()
	for i, b := range blocks {
		invariants.Check(i == 0 || blocks[i-1].Source <= b.Source, "rdd: %s: blocks of target %d are not in source order", s.stage.name, target)
		if err := t.check(); err != nil {
			return err
		}
		if err := f(b); err != nil {
			return err
		}
	}
	return nil
}

// Blocks are the blocks of a target partition in order; nil before the stage is
// complete and after the release. The caller has to hold the shuffle (it is
// its owner or has retained it) as long as it uses them; Read does that by itself.
func (s *Shuffled[K, V]) Blocks(target int) []*Rows[K, V] {
	if s.err != nil {
		return nil
	}
	blocks, err := s.store.enter(target)
	if err != nil {
		return nil
	}
	s.store.life.Leave()
	return blocks
}

// RDD is the shuffled dataset, for reading record by record.
func (s *Shuffled[K, V]) RDD() *RDD[Pair[K, V]] { return s.rdd }

// Stage does the shuffle's work.
func (s *Shuffled[K, V]) Stage() *Stage { return s.stage }

// Partitioner is what the rows lie by.
func (s *Shuffled[K, V]) Partitioner() partitioner.Partitioner[K] { return s.p }

// NumPartitions is the number of target partitions; 0 if the shuffle was built wrongly.
func (s *Shuffled[K, V]) NumPartitions() int { return s.rdd.n }

// Err is the fault of a shuffle that was built wrongly.
func (s *Shuffled[K, V]) Err() error { return s.err }

// Retain adds a holder of the blocks; Release drops one, without any the owner.
func (s *Shuffled[K, V]) Retain() error {
	if s.err != nil {
		return s.err
	}
	return s.store.life.Retain()
}

// Release drops one holder of the blocks, or lets them go for the owner. With
// the last one they go back to the run's pools.
func (s *Shuffled[K, V]) Release() {
	if s.store != nil {
		s.store.life.Release()
	}
}

// PartitionBy lays r out by p; r itself if it lies so already.
func PartitionBy[K comparable, V any](r *RDD[Pair[K, V]], p partitioner.Partitioner[K]) *RDD[Pair[K, V]] {
	return layBy(r, labelOf(r, "partitionBy"), p)
}

// layBy is PartitionBy for the step named by l.
func layBy[K comparable, V any](r *RDD[Pair[K, V]], l *label, p partitioner.Partitioner[K]) *RDD[Pair[K, V]] {
	if LiesBy(r, p) {
		return r
	}
	return layOut(r, l, p).RDD()
}

// PartitionerOf is the partitioner by which r lies, nil if none is known.
func PartitionerOf[K comparable, V any](r *RDD[Pair[K, V]]) partitioner.Partitioner[K] {
	if r == nil {
		return nil
	}
	p, _ := r.part.(partitioner.Partitioner[K])
	return p
}

func faultOf[T any](r *RDD[T], name string) error {
	if r == nil {
		return fmt.Errorf("%s of a nil rdd", name)
	}
	return r.err
}
