package rdd

import "github.com/statemill/statemill/internal/sabotage"

// Within is r for the function of one operator: in guarded mode a record that
// panics in what it is pushed to is told by the operator's name, also where several
// functions are fused. Otherwise it is r, at no cost for its records. name must not
// change once the dataset is used.
func Within[T any](r *RDD[T], name string) *RDD[T] {
	if r == nil || r.err != nil {
		return r
	}
	c := *r
	c.compute = func(t *Task, p int, emit func(T) error) error {
		if t.Guard == nil || sabotage.On("panic-of-no-operator") {
			return r.compute(t, p, emit)
		}
		return r.compute(t, p, func(v T) error {
			operator, key := t.Operator, t.Key
			t.Operator, t.Key = name, nil
			err := emit(v)
			t.Operator, t.Key = operator, key // after a panic the guard does it
			return err
		})
	}
	return &c
}
