package rdd

import (
	"unsafe"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/partitioner"
)

// keyed says where a key goes: its stable hash and its partition.
type keyed[K comparable] struct {
	p     partitioner.Partitioner[K]
	n     int
	hash  func(K) uint64
	fast  bool          // the partition follows from the hash: one hash a record
	check func(K) error // nil unless a key can be refused (NaN)
}

func newKeyed[K comparable](p partitioner.Partitioner[K]) (*keyed[K], error) {
	if p == nil {
		return nil, ErrNoPartitioner
	}
	if err := partitioner.Check(p); err != nil {
		return nil, err
	}
	key, err := codec.KeyFor[K]()
	if err != nil {
		return nil, err
	}
	k := &keyed[K]{p: p, n: p.Partitions(), hash: key.HashFunc()}
	if h, ok := p.(partitioner.Hasher[K]); ok {
		k.hash, k.fast = h.HashFunc(), true
	}
	if key.NeedsCheck() {
		k.check = key.Check
	}
	return k, nil
}

// rowWriter scatters the rows of one source over the targets.
type rowWriter[K comparable, V any] struct {
	writer[Rows[K, V]]
	keyed *keyed[K]
	label *label

	cur    []*Rows[K, V] // the block of each target being filled, nil before the first row
	origin Origin        // stream and partition of the newest mark of the blocks in cur

	staged []stagedRow[K, V] // guarded mode only
}

type stagedRow[K, V any] struct {
	target int
	hash   uint64
	kv     Pair[K, V]
}

func newRowWriter[K comparable, V any](t *Task, s *store[Rows[K, V]], source int, k *keyed[K], l *label) *rowWriter[K, V] {
	return &rowWriter[K, V]{
		writer: newWriter(t, s, source), keyed: k, label: l,
		cur: make([]*Rows[K, V], s.targets), origin: t.Origin,
	}
}

// emitter is the end of the pushed chain: the closure that fits partitioner
// and mode. What it captures is fixed here so that a record costs one call and one hash.
func (w *rowWriter[K, V]) emitter() func(Pair[K, V]) error {
	if w.t.Guard != nil {
		w.t.Guard.Enlist(w)
		return func(kv Pair[K, V]) error {
			target, h, err := w.place(kv.Key)
			if err == nil {
				w.staged = append(w.staged, stagedRow[K, V]{target, h, kv})
			}
			return err
		}
	}
	if !w.keyed.fast || w.keyed.check != nil {
		return func(kv Pair[K, V]) error {
			target, h, err := w.place(kv.Key)
			if err != nil {
				return err
			}
			return w.put(target, h, kv.Key, kv.Value)
		}
	}
	t, cur, hash, n, limit := w.t, w.cur, w.keyed.hash, uint64(w.keyed.n), w.limit
	return func(kv Pair[K, V]) error {
		h := hash(kv.Key)
		b := cur[(h>>32)*n>>32]
		if b == nil || b.N >= limit || !sameOrigin(&t.Origin, &w.origin) {
			return w.put(int((h>>32)*n>>32), h, kv.Key, kv.Value)
		}
		i := b.N & (blockRows - 1)
		b.Hash[i] = h
		b.Key[i] = kv.Key
		b.Value[i] = kv.Value
		b.Offset[i] = t.Origin.Offset
		b.N = i + 1
		return nil
	}
}

// keyChecker refuses keys that cannot be laid out (NaN); nil if all can. Steps that
// fold before they move a row ask it, so that the record at fault is known.
func (w *rowWriter[K, V]) keyChecker() func(t *Task, key K) error {
	check := w.keyed.check
	if check == nil {
		return nil
	}
	return func(t *Task, key K) error {
		if err := check(key); err != nil {
			return t.Fail(w.label.operator(), key, err)
		}
		return nil
	}
}

// place finds a key's partition and hash, and refuses a key that has none.
func (w *rowWriter[K, V]) place(key K) (target int, h uint64, err error) {
	k := w.keyed
	if k.check != nil {
		if err := k.check(key); err != nil {
			return 0, 0, w.t.Fail(w.label.operator(), key, err)
		}
	}
	h = k.hash(key)
	if k.fast {
		return int((h >> 32) * uint64(k.n) >> 32), h, nil
	}
	target, err = partitioner.Of(k.p, key)
	if err != nil {
		return 0, 0, w.t.Fail(w.label.operator(), key, err)
	}
	return target, h, nil
}

// put writes one row, with a new block or a new mark where the row needs it.
func (w *rowWriter[K, V]) put(target int, h uint64, key K, value V) error {
	if o := &w.t.Origin; !sameOrigin(o, &w.origin) {
		w.origin = *o
		for _, b := range w.cur {
			if b != nil {
				b.from.add(b.N, o)
			}
		}
	}
	b := w.cur[target]
	if b == nil || b.N >= w.limit {
		var err error
		if b, err = w.take(target); err != nil {
			return err
		}
		b.Source = w.source
		b.from.add(0, &w.origin)
		w.cur[target] = b
	}
	i := b.N & (blockRows - 1)
	b.Hash[i], b.Key[i], b.Value[i], b.Offset[i] = h, key, value, w.t.Origin.Offset
	b.N = i + 1
	return nil
}

// Flush writes what the record staged. Only cancellation can make it fail.
func (w *rowWriter[K, V]) Flush() error {
	for i := range w.staged {
		r := &w.staged[i]
		if err := w.put(r.target, r.hash, r.kv.Key, r.kv.Value); err != nil {
			return err
		}
	}
	w.Drop()
	return nil
}

// Drop forgets what the record staged.
func (w *rowWriter[K, V]) Drop() {
	clear(w.staged)
	w.staged = w.staged[:0]
}

// sameOrigin compares stream and partition by address: cheap enough to do for
// every record, and a source uses the same strings for a whole range. Equal
// strings at different addresses only cost a mark more.
func sameOrigin(a, b *Origin) bool {
	return unsafe.StringData(a.Stream) == unsafe.StringData(b.Stream) && len(a.Stream) == len(b.Stream) &&
		unsafe.StringData(a.Partition) == unsafe.StringData(b.Partition) && len(a.Partition) == len(b.Partition)
}
