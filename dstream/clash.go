package dstream

import (
	"fmt"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
)

// clashFaults finds sinks and sources of which a job can have one alone, as far as they
// know it before the start. The later of two is at fault, and names the line of the other.
func (ssc *StreamingContext) clashFaults() (faults []*Fault) {
	add := func(at, call, before string, err error) {
		if err != nil {
			faults = append(faults, &Fault{Caller: at, Call: "dstream." + call, Err: fmt.Errorf("%w (the other is that of %s)", err, before)})
		}
	}
	first := map[sink.Unit]*output{}
	var units []sink.Unit
	for _, o := range ssc.outputs {
		if o.unit == nil || first[o.unit] != nil {
			continue
		}
		for _, u := range units {
			add(o.caller, o.kind, first[u].caller, unitsClash(o.label(), o.unit, u))
		}
		first[o.unit] = o
		units = append(units, o.unit)
	}
	var before []*node
	for _, n := range ssc.nodes {
		if n.src == nil {
			continue
		}
		for _, m := range before {
			add(n.caller, n.kind, m.caller, sourcesClash(n.label(), n.src.src, m.src.src))
		}
		before = append(before, n)
	}
	return faults
}

// clashes asks sources that are open whether they can be together.
func (r *run) clashes() error {
	for i, in := range r.inputs {
		for _, other := range r.inputs[:i] {
			if err := sourcesClash(in.name(), in.src, other.src); err != nil {
				return fmt.Errorf("open: source %q beside source %q: %w", in.name(), other.name(), err)
			}
		}
	}
	return nil
}

func unitsClash(name string, a, b sink.Unit) error {
	x, ok := a.(sink.Exclusive)
	if !ok {
		return nil
	}
	return callErr(name, func() error { return x.Clash(b) })
}

func sourcesClash(name string, a, b planner) error {
	x, ok := a.(source.Exclusive)
	if !ok {
		return nil
	}
	return callErr(name, func() error { return x.Clash(b) })
}
