package staterdd

import (
	"github.com/statemill/statemill/rdd"
)

// callKeyed calls the keyed function for each record of the block. Entries carry the key's
// deadline where other operators carry the update time.
func (p *Partition[K, V, S, M]) callKeyed(keys []K, values []V) error {
	f, st, c, b := p.op.fn.keyed, &p.state, &p.call, &p.block
	copies, always := p.shares()
	values = values[:len(keys)]
	p.emitted = p.emitted[:0]
	c.discard() // a guarded record that panicked may have left some
	for i := range keys {
		p.row = i
		s, entry, first := b.Load(i)
		deadline, hasState := int64(noDeadline), false
		if entry {
			deadline, _, hasState = UnpackDeadline(b.Time(i))
		}
		st.value, st.flags = s, 0
		if hasState {
			st.flags = stateSet
			if copies && (first || always) {
				st.flags |= stateShared
			}
		}
		c.deadline, c.set = deadline, false
		if err := f(c, keys[i], rdd.Some(values[i])); err != nil {
			c.discard()
			return p.failed(err)
		}
		if st.flags&stateFaulted != 0 {
			c.discard()
			return p.misused()
		}
		if st.flags&stateRemoved != 0 && !c.set {
			c.deadline = noDeadline // the deadline goes with the state
		}
		state := st.flags&stateSet != 0
		switch {
		case !state && c.deadline == noDeadline:
			if entry {
				b.Delete(i)
			}
		case st.flags&(stateUpdated|stateRemoved) != 0, !entry:
			b.Set(i, st.value, packDeadline(c.deadline, state))
		case c.set:
			b.Touch(i, packDeadline(c.deadline, state))
		}
		p.emitted = append(p.emitted, c.out...)
		c.discard()
	}
	// The outputs follow the changes, and only the outputs of a whole block are kept.
	for _, m := range p.emitted {
		p.out.push(m)
	}
	clear(p.emitted)
	return nil
}

// discard empties the outputs of a call; what they refer to is not kept alive.
func (c *Call[S, M]) discard() {
	clear(c.out)
	c.out = c.out[:0]
}
