package rdd

// label is what a step is called. It is shared with the closures of the step, which name
// it in errors.
type label struct {
	name   string
	own    bool   // said by Named
	within string // the operator that the step is part of
}

// labelOf is the label of a step over r.
func labelOf[T any](r *RDD[T], name string) *label {
	l := &label{name: name}
	if r != nil {
		l.within = r.within
	}
	return l
}

// operator is the name that errors tell: the step's own, else that of the operator that
// it is part of, else the kind of step.
func (l *label) operator() string {
	if l.own || l.within == "" {
		return l.name
	}
	return l.within
}

// Within is r for the functions of one operator: what is made of it is told by the
// operator's name in errors, unless a step has one of its own (Named). It lasts until
// another Within, or until the rows are kept. It costs nothing.
func Within[T any](r *RDD[T], operator string) *RDD[T] {
	if r == nil || r.err != nil {
		return r
	}
	c := *r
	c.within = operator
	return &c
}
