package rdd

import (
	"reflect"
	"runtime"
	"slices"

	"github.com/statemill/statemill/internal/sabotage"
)

// Which of several fused functions a panic comes from is on the stack: the closure of
// each step whose record is under way has a frame there. So that no record has to tell, a
// task has a trail: the closures that records are pushed to, noted once per partition
// where a step begins to compute, the last step first. A panic looks for them on the stack.

// trail lists the closures of the steps that a task computes. Barriers share that of
// their task.
type trail []footstep

// footstep is one closure: its code, and what its step is named by.
type footstep struct {
	code uintptr
	l    *label // nil: the closure is not of this package
	name string // where l is nil
}

// push computes partition p of r: its records are pushed to emit, a closure of the step
// named by l.
func (r *RDD[T]) push(t *Task, p int, l *label, emit func(T) error) error {
	depth := t.enter(l, reflect.ValueOf(emit).Pointer())
	err := r.compute(t, p, emit)
	t.leave(depth)
	return err
}

// enter notes a closure; what it gives is for leave, which a panic leaves out.
func (t *Task) enter(l *label, code uintptr) (depth int) {
	s := footstep{code: code, l: l}
	if l == nil {
		s.name = t.Operator
	}
	if t.trail == nil {
		t.trail = &trail{}
	}
	*t.trail = append(*t.trail, s)
	return len(*t.trail) - 1
}

func (t *Task) leave(depth int) {
	if t.trail != nil {
		*t.trail = (*t.trail)[:depth]
	}
}

// depth is for leave, for who recovers a panic and goes on.
func (t *Task) depth() int {
	if t.trail == nil {
		return 0
	}
	return len(*t.trail)
}

// at is the name of the step whose closure is running; to be called while the stack of
// the panic is there. Where no closure runs, but a source or a function over a whole
// partition, it is the operator of the task.
func (t *Task) at() (operator string) {
	operator = t.Operator
	if t.trail == nil || sabotage.On("panic-of-no-operator") {
		return operator
	}
	steps := *t.trail
	next := len(steps) - 1 // what was entered last is the nearest to the source
	for _, code := range slices.Backward(codeOnStack(reflect.ValueOf(Protect).Pointer())) {
		if next < 0 {
			break
		}
		if s := &steps[next]; s.code == code {
			operator = s.name
			if s.l != nil {
				operator = s.l.operator()
			}
			next--
		}
	}
	return operator
}

// codeOnStack lists the functions that run, the innermost first, as far as until.
func codeOnStack(until uintptr) (entries []uintptr) {
	pcs := make([]uintptr, 256)
	n := runtime.Callers(3, pcs)
	for ; n == len(pcs); n = runtime.Callers(3, pcs) {
		pcs = make([]uintptr, 2*len(pcs))
	}
	frames := runtime.CallersFrames(pcs[:n])
	for {
		f, more := frames.Next()
		if f.Entry == until {
			return entries
		}
		if f.Func != nil { // else it is inlined into the next one
			entries = append(entries, f.Entry)
		}
		if !more {
			return entries
		}
	}
}
