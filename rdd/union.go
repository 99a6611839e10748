package rdd

import "errors"

// Union concatenates the partitions of the datasets. The executor is the first
// one's that has one. No dataset at all is an error.
func Union[T any](rs ...*RDD[T]) *RDD[T] {
	if len(rs) == 0 {
		return failed[T](errors.New("union of no datasets"))
	}
	out := &RDD[T]{label: &label{name: "union"}}
	var owner []*RDD[T] // of each partition
	var first []int
	for _, r := range rs {
		if r == nil {
			return failed[T](errors.New("union with a nil rdd"))
		}
		if r.err != nil {
			return failed[T](r.err)
		}
		for range r.n {
			owner, first = append(owner, r), append(first, out.n)
		}
		out.n += r.n
		out.deps = append(out.deps, r.deps...)
		out.res = append(out.res, r.res...)
		if out.exec == nil {
			out.exec = r.exec
		}
	}
	out.compute = func(t *Task, p int, emit func(T) error) error {
		return owner[p].compute(t, p-first[p], emit)
	}
	return out
}
