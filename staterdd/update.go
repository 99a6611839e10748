package staterdd

import (
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
)

// updating is what a partition of an update operator gathers of a batch: its records by key.
type updating[K comparable, V any] struct {
	index  map[K]int32
	keys   []K
	hashes []uint64
	counts []int32
	last   []rdd.Origin // where the last record of a key comes from

	group []int32 // of each record
	raw   []V     // the records' values

	values []V     // by key, for the calls; never used again, since functions may keep them
	ends   []int32 // of each key's values in values

	called []uint64 // by slot: keys that were called for their data
	fresh  []ordered[K]
	before []byte
	after  []byte
}

// reset lets go of what an attempt gathered.
func (u *updating[K, V]) reset() {
	if len(u.keys) == 0 && u.values == nil && len(u.raw) == 0 {
		return
	}
	clear(u.index)
	clear(u.keys)
	clear(u.last)
	clear(u.raw)
	u.keys, u.hashes, u.counts, u.last = u.keys[:0], u.hashes[:0], u.counts[:0], u.last[:0]
	u.group, u.raw, u.values, u.ends = u.group[:0], u.raw[:0], nil, u.ends[:0]
}

func (u *updating[K, V]) add(hash uint64, k K, v V, from rdd.Origin) {
	if u.index == nil {
		u.index = map[K]int32{}
	}
	g, ok := u.index[k]
	if !ok {
		g = int32(len(u.keys))
		u.index[k] = g
		u.keys, u.hashes, u.counts = append(u.keys, k), append(u.hashes, hash), append(u.counts, 0)
		u.last = append(u.last, from)
	}
	u.counts[g]++
	u.last[g] = from
	u.group, u.raw = append(u.group, g), append(u.raw, v)
}

// sort lays the values out by key, in order.
func (u *updating[K, V]) sort() {
	u.values = make([]V, len(u.raw))
	u.ends = u.ends[:0]
	at := int32(0)
	for _, n := range u.counts {
		u.ends = append(u.ends, at) // where they begin, until all are there
		at += n
	}
	for i, g := range u.group {
		u.values[u.ends[g]] = u.raw[i]
		u.ends[g]++
	}
}

// of gives the values of a key; what is appended to them goes elsewhere.
func (u *updating[K, V]) of(g int) []V {
	from, end := u.ends[g]-u.counts[g], u.ends[g]
	return u.values[from:end:end]
}

// gather takes the records of one row block.
func (p *Partition[K, V, S, M]) gather(r *rdd.Rows[K, V]) error {
	for i := range r.N {
		if err := p.gatherOne(r.Hash[i], r.Key[i], r.Value[i], r.Origin(i)); err != nil {
			return err
		}
	}
	return cancelled(p.task)
}

// gatherColumns takes records of a partition that stands alone.
func (p *Partition[K, V, S, M]) gatherColumns(keys []K, values []V) error {
	for i, k := range keys {
		if err := p.gatherOne(p.op.hash(k), k, values[i], rdd.Origin{Offset: int64(i)}); err != nil {
			return err
		}
	}
	return nil
}

func (p *Partition[K, V, S, M]) gatherOne(hash uint64, k K, v V, from rdd.Origin) error {
	if !p.op.checkKeys {
		p.update.add(hash, k, v, from)
		return nil
	}
	p.one[0], p.keys, p.row = k, p.one[:], 0
	p.task.Origin = from
	take := func() error {
		if err := p.op.key.Check(k); err != nil {
			return p.failed(err)
		}
		p.update.add(hash, k, v, from)
		return nil
	}
	if g := p.task.Guard; g != nil {
		return g.Record(p.task, take)
	}
	return take()
}

// afterData makes the calls that follow the data of a batch.
func (p *Partition[K, V, S, M]) afterData() error {
	if !p.op.updates() {
		return p.expire()
	}
	defer p.locate() // before a panic is turned into the record's error
	u := &p.update
	u.sort()
	clear(u.called)
	for base := 0; base < len(u.keys); {
		n := min(p.op.blockSize, len(u.keys)-base)
		if p.task.Guard != nil {
			n = 1
		}
		p.at = func(row int) { p.task.Origin = u.last[base+row] }
		if err := p.guarded(func() error { return p.updateBlock(base, n) }); err != nil {
			return err
		}
		p.settle() // what stops the task now is not about a record
		base += n
		if err := p.measure(); err != nil {
			return err
		}
		if err := cancelled(p.task); err != nil {
			return err
		}
	}
	p.settle()
	return p.sweep()
}

// guarded runs one call, or a block of them where records are not guarded.
func (p *Partition[K, V, S, M]) guarded(f func() error) error {
	if p.task.Guard == nil {
		return f()
	}
	p.locate()
	return p.task.Guard.Record(p.task, f)
}

// updateBlock calls the function for up to a block of keys with data. Nothing is applied if a
// call fails.
func (p *Partition[K, V, S, M]) updateBlock(base, n int) error {
	u, b := &p.update, &p.block
	p.keys, p.row = u.keys[base:base+n], 0
	if err := p.m.Resolve(b, u.hashes[base:base+n], p.keys); err != nil {
		return p.op.fail(p.n, err)
	}
	p.markCalled(n) // a call that is skipped counts, too
	for i := range n {
		p.row = i
		s, exists, _ := b.Load(i)
		next, live, same, err := p.callUpdate(p.keys[i], u.of(base+i), s, exists)
		switch {
		case err != nil:
			return p.failed(err)
		case !live:
			b.Delete(i)
		case !same:
			b.Set(i, next, p.now)
		}
	}
	if err := p.m.Apply(b); err != nil {
		return p.op.fail(p.n, err)
	}
	p.markCalled(n) // keys that have come
	p.calls += int64(n)
	p.inserted += int64(len(b.Inserted()))
	return nil
}

func (p *Partition[K, V, S, M]) markCalled(n int) {
	for i := range n {
		if slot, ok := p.block.Slot(i); ok {
			u := &p.update
			for int(slot/64) >= len(u.called) {
				u.called = append(u.called, 0)
			}
			u.called[slot/64] |= 1 << (slot % 64)
		}
	}
}

func (u *updating[K, V]) wasCalled(slot uint32) bool {
	return int(slot/64) < len(u.called) && u.called[slot/64]&(1<<(slot%64)) != 0
}

// callUpdate makes one call. The function gets a copy of a state with references, so that the
// one before is still there to compare with.
func (p *Partition[K, V, S, M]) callUpdate(k K, values []V, s S, exists bool) (next S, live, same bool, err error) {
	var before rdd.Option[S]
	if exists {
		shown := s
		if copies, _ := p.shares(); copies {
			if shown, err = p.op.clone(s); err != nil {
				return next, false, false, err
			}
		}
		before = rdd.Some(shown)
	}
	after, err := p.op.fn.update(p.batch, k, values, before)
	if err != nil {
		return next, false, false, err
	}
	next, live = after.Get()
	if live && exists && !sabotage.On("equal-state-written") {
		same = p.op.equality.compare(s, next, &p.update.before, &p.update.after)
	}
	return next, live, same, nil
}

// sweep calls the function for the keys without data and gives all live keys, in the order of
// the keys.
func (p *Partition[K, V, S, M]) sweep() error {
	calls := !p.op.touched && !sabotage.On("idle-keys-not-called")
	p.at = func(int) { p.task.Origin = rdd.Origin{} } // these calls come from no record
	n := 0
	err := p.inOrder(func(slot uint32, k K, s S) error {
		if n++; n%largeChunk == 0 {
			if err := cancelled(p.task); err != nil {
				return err
			}
		}
		live := true
		if calls && !p.update.wasCalled(slot) {
			p.one[0], p.keys, p.row = k, p.one[:], 0
			err := p.guarded(func() (err error) {
				s, live, err = p.sweepOne(slot, k, s)
				return err
			})
			if err != nil {
				return err
			}
		}
		if live {
			p.out.push(p.op.fn.pair(k, s))
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.settle()
	return nil
}

// sweepOne calls the function for a key without data.
func (p *Partition[K, V, S, M]) sweepOne(slot uint32, k K, s S) (after S, live bool, err error) {
	next, live, same, err := p.callUpdate(k, nil, s, true)
	switch {
	case err != nil:
		return s, true, p.failed(err)
	case !live:
		err = p.m.ExpireSlot(slot)
	case same:
		next = s
	default:
		err = p.m.PutSlot(slot, next, p.now)
	}
	if err != nil {
		return s, true, p.op.fail(p.n, err)
	}
	p.calls++
	return next, live, nil
}
