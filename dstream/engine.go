package dstream

import (
	"fmt"
	"math"
	"time"
)

// The run is the harness.Engine of its context.

// State gives the committed state of an operator.
func (r *run) State(operator string) (any, error) { return r.Sample(operator, math.MaxInt) }

// Sample gives at most n keys of the committed state of an operator.
func (r *run) Sample(operator string, n int) (any, error) {
	op, err := r.operator(operator)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	rows, err := op.op.hold()
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return rows(n)
}

func (r *run) operator(name string) (*node, error) {
	for _, n := range r.ops {
		if n.label() == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("dstream: no stateful operator is named %q: there are %q", name, r.Operators())
}

// Sources lists the sources in use.
func (r *run) Sources() (names []string) {
	for _, in := range r.inputs {
		names = append(names, in.name())
	}
	return names
}

// Operators lists the stateful operators in use.
func (r *run) Operators() (names []string) {
	for _, n := range r.ops {
		names = append(names, n.label())
	}
	return names
}

// Log says that an operator is the log of a window.
func (r *run) Log(operator string) bool {
	op, err := r.operator(operator)
	return err == nil && op.face != nil && op.suffix != ""
}

// Outputs lists the outputs.
func (r *run) Outputs() (names []string) {
	for _, o := range r.ssc.outputs {
		names = append(names, o.label())
	}
	return names
}

// ZeroTime is one interval before the first batch time.
func (r *run) ZeroTime() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.zero.UTC()
}

// Epoch is the newest committed epoch.
func (r *run) Epoch() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epoch
}
