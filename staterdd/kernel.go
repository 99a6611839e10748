package staterdd

import (
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
)

// The loops below are the hot path. Each has the function's shape written out, makes no
// interface call and allocates nothing; a call's effects stay in the block until all of
// its records have been called.

// shares returns which values need a private copy: those that an older version shares, and
// under guard all, since a record that is dropped must not have changed the value of an earlier one.
func (p *Partition[K, V, S, M]) shares() (copies, always bool) {
	if p.op.clone == nil || sabotage.On("no-private-copy") {
		return false, false
	}
	return true, p.task.Guard != nil
}

// callPlain calls the short form for each record of the block.
func (p *Partition[K, V, S, M]) callPlain(keys []K, values []V) error {
	f, st, b, now := p.op.fn.plain, &p.state, &p.block, p.now
	touch := p.touches()
	copies, always := p.shares()
	out := p.out.reserve(len(keys))
	values = values[:len(keys)]
	for i := range keys {
		p.row = i
		s, exists, first := b.Load(i)
		st.value, st.flags = s, 0
		if exists {
			st.flags = stateSet
			if copies && (first || always) {
				st.flags = stateSet | stateShared
			}
		}
		m := f(keys[i], rdd.Some(values[i]), st)
		switch {
		case st.flags&stateFaulted != 0:
			return p.misused()
		case st.flags&stateUpdated != 0:
			b.Set(i, st.value, now)
		case st.flags&stateRemoved != 0:
			b.Delete(i)
		case exists && touch:
			b.Touch(i, now)
		case !exists && sabotage.On("insert-before-update"):
			b.Set(i, s, now)
		}
		out = append(out, m)
	}
	p.out.keep(out)
	return nil
}

// callTimed calls the long form, which may fail, for each record of the block.
func (p *Partition[K, V, S, M]) callTimed(keys []K, values []V) error {
	timed, fallible, st, b, now := p.op.fn.timed, p.op.fn.err, &p.state, &p.block, p.now
	touch := p.touches()
	copies, always := p.shares()
	out := p.out.reserve(len(keys))
	values = values[:len(keys)]
	for i := range keys {
		p.row = i
		s, exists, first := b.Load(i)
		st.value, st.flags = s, 0
		if exists {
			st.flags = stateSet
			if copies && (first || always) {
				st.flags = stateSet | stateShared
			}
		}
		var m M
		var emit bool
		var err error
		if timed != nil {
			m, emit = timed(p.batch.Time, keys[i], rdd.Some(values[i]), st)
		} else {
			m, emit, err = fallible(p.batch.Time, keys[i], rdd.Some(values[i]), st)
		}
		switch {
		case st.flags&stateFaulted != 0:
			return p.misused()
		case err != nil:
			return p.failed(err)
		case st.flags&stateUpdated != 0:
			b.Set(i, st.value, now)
		case st.flags&stateRemoved != 0:
			b.Delete(i)
		case exists && touch:
			b.Touch(i, now)
		}
		if emit {
			out = append(out, m)
		}
	}
	p.out.keep(out)
	return nil
}

// touches reports whether a record refreshes the time of a key that its call left alone.
func (p *Partition[K, V, S, M]) touches() bool {
	return p.op.timeout > 0 && !sabotage.On("no-touch")
}

// misused makes the error of a record whose function used its handle illegally.
func (p *Partition[K, V, S, M]) misused() error {
	return p.failed(p.state.Err())
}
