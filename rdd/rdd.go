package rdd

import (
	"context"
	"fmt"
	"strconv"
)

// RDD is an immutable, lazy, partitioned dataset of one batch. Methods may be
// called from any goroutine unless they say otherwise; Named and WithExecutor are for whoever builds it.
type RDD[T any] struct {
	n       int
	label   *label
	part    any // partitioner.Partitioner[K] where T is Pair[K, V]
	compute func(t *Task, p int, emit func(T) error) error
	deps    []*Stage
	res     []Resource
	exec    Executor
	input   any // what the records were read from, see WithInput
	within  string
	err     error // a fault of the construction, told by the first use
}

// New makes a dataset from a function that pushes the records of partition
// t.Partition to emit and returns emit's error at once. The function sets t.Origin
// (Stream and Partition when it begins, Offset before each record) and looks at t.Ctx from time to
// time. Each record it pushes is the unit of the guarded mode. deps run before it.
func New[T any](partitions int, compute func(t *Task, emit func(T) error) error, deps ...*Stage) *RDD[T] {
	r := leaf(partitions, "rdd", func(t *Task, p int, emit func(T) error) error {
		// Below a union the source's own number differs from the task's.
		outer := t.Partition
		t.Partition = p
		defer func() { t.Partition = outer }()
		return compute(t, emit)
	})
	r.deps = deps
	if compute == nil && r.err == nil {
		r.err = fmt.Errorf("rdd without a compute function")
	}
	return r
}

// leaf makes a dataset whose records start here.
func leaf[T any](n int, name string, compute func(t *Task, p int, emit func(T) error) error) *RDD[T] {
	r := &RDD[T]{n: n, label: &label{name: name}}
	r.compute = func(t *Task, p int, emit func(T) error) error {
		operator := t.Operator
		t.Operator = r.label.operator() // of a panic of the source itself
		err := compute(t, p, guardEmit(t, emit))
		t.Operator = operator
		return err
	}
	if n < 1 {
		r.err = fmt.Errorf("%s of %d partitions: %w", name, n, ErrPartitions)
	}
	return r
}

// failed is a dataset whose every use gives err.
func failed[T any](err error) *RDD[T] { return &RDD[T]{label: &label{}, err: err} }

// derive makes a narrow child: same partitions, stages, resources and executor.
func derive[T, U any](r *RDD[T], l *label, compute func(t *Task, p int, emit func(U) error) error) *RDD[U] {
	if r == nil {
		return failed[U](fmt.Errorf("%s of a nil rdd", l.name))
	}
	return &RDD[U]{n: r.n, label: l, within: r.within, compute: compute, deps: r.deps, res: r.res, exec: r.exec, err: r.err}
}

// needs says whether the dataset was given the functions that it needs; else every use of
// it tells so, and no record has to.
func (r *RDD[T]) needs(given bool) *RDD[T] {
	if !given && r.err == nil {
		r.err = fmt.Errorf("%s: %w", r.label.name, errNilFunction)
	}
	return r
}

// Parallelize makes a dataset of p partitions from a slice, which must not
// change while it is used. Partition i is seq[i*n/p : (i+1)*n/p]; the
// origin's offset is the index in seq. The stream's name is "parallelize" or what Named gave.
func Parallelize[T any](seq []T, p int) *RDD[T] {
	l := &label{name: "parallelize"}
	r := leaf(p, "parallelize", func(t *Task, i int, emit func(T) error) error {
		n := len(seq)
		from, until := i*n/p, (i+1)*n/p
		t.Origin = Origin{Stream: l.name, Partition: strconv.Itoa(i)}
		for from < until {
			if err := t.check(); err != nil {
				return err
			}
			chunk := seq[from:min(until, from+blockRows)]
			for j := range chunk {
				t.Origin.Offset = int64(from + j)
				if err := emit(chunk[j]); err != nil {
					return err
				}
			}
			from += len(chunk)
		}
		return nil
	})
	r.label = l
	return r
}

// NumPartitions is the number of partitions.
func (r *RDD[T]) NumPartitions() int { return r.n }

// Name is the name of the step that made the dataset.
func (r *RDD[T]) Name() string { return r.label.name }

// Named sets the step's name for errors and returns r. To be called before the
// dataset is used.
func (r *RDD[T]) Named(name string) *RDD[T] {
	r.label.name, r.label.own = name, true
	return r
}

// Partitioner is the partitioner.Partitioner[K] by which the records lie, where
// T is a Pair with keys K; nil if none is known. See PartitionerOf.
func (r *RDD[T]) Partitioner() any { return r.part }

// Deps are the stages that must be complete before Compute. The slice is not to be changed.
func (r *RDD[T]) Deps() []*Stage { return r.deps }

// Err is the fault of a dataset that was built wrongly (for example with 0
// partitions). Every use returns it too.
func (r *RDD[T]) Err() error { return r.err }

// WithExecutor is the same dataset run by e; what is derived from it inherits e.
func (r *RDD[T]) WithExecutor(e Executor) *RDD[T] {
	c := *r
	c.exec = e
	return &c
}

// WithDeps is the same dataset which needs these stages too.
func (r *RDD[T]) WithDeps(deps ...*Stage) *RDD[T] {
	c := *r
	c.deps = append(append([]*Stage(nil), r.deps...), deps...)
	return &c
}

// WithPartitioner is the same dataset, said to lie by p, a partitioner.Partitioner[K].
func (r *RDD[T]) WithPartitioner(p any) *RDD[T] {
	c := *r
	c.part = p
	return &c
}

// WithInput is the same dataset, said to be the records of in as they were read, one
// partition for each of in's. Keep and Pin leave it so; a step that changes, drops, moves or
// mixes records does not.
func (r *RDD[T]) WithInput(in any) *RDD[T] {
	c := *r
	c.input = in
	return &c
}

// Input is what WithInput gave, nil for a dataset that is not read as it is.
func (r *RDD[T]) Input() any { return r.input }

// WithResource is the same dataset, said to read from res: pins hold it.
func (r *RDD[T]) WithResource(res ...Resource) *RDD[T] {
	c := *r
	c.res = append(append([]Resource(nil), r.res...), res...)
	return &c
}

// Executor is what runs the dataset's actions; never nil.
func (r *RDD[T]) Executor() Executor {
	if r.exec == nil {
		return Local(0, nil)
	}
	return r.exec
}

// Compute pushes the records of partition t.Partition to emit. The stages in
// Deps must be complete. An error of emit ends it and is returned.
func (r *RDD[T]) Compute(t *Task, emit func(T) error) error {
	return r.ComputePartition(t, t.Partition, emit)
}

// ComputePartition is Compute of another partition than the task's.
func (r *RDD[T]) ComputePartition(t *Task, p int, emit func(T) error) error {
	if r.err != nil {
		return r.err
	}
	if p < 0 || p >= r.n {
		return fmt.Errorf("rdd %s: partition %d of %d", r.label.name, p, r.n)
	}
	return r.push(t, p, nil, emit)
}

// Materialize runs the stages that the dataset needs by its executor.
func (r *RDD[T]) Materialize(ctx context.Context) error {
	if r.err != nil {
		return r.err
	}
	return Materialize(ctx, r.Executor(), r.deps...)
}
