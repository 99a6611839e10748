package staterdd

import (
	"errors"
	"fmt"

	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/statemap"
)

// ErrOverlap: two batches of one operator were run at once.
var ErrOverlap = errors.New("two batches of one operator run at once; batches must follow each other")

// Partition applies the update rule to one partition of an operator: Begin, Update for the data,
// Expire, then Seal or Abort. It is what the tasks of Advance use; alone it serves benchmarks and
// tests. All scratch memory of the rule is here and is reused from batch to batch. It belongs to
// one goroutine at a time.
type Partition[K comparable, V, S, M any] struct {
	op *Operator[K, V, S, M]
	n  int // its number

	line *lineage[K, S]
	m    *statemap.Map[K, S] // the version being built
	out  mapped[M]

	batch Batch
	now   int64 // batch.Time
	prev  int64 // the time of the batch before
	task  *rdd.Task

	state State[S]
	call  Call[S, M]
	block statemap.Block[K, S]

	// What the call running now is about, for errors.
	keys []K           // of the block
	row  int           // the record's index in keys
	at   func(row int) // moves the task's cursor to the record
	exp  []expiring[K] // the keys whose calls are due
	one  [1]K          // the key of such a call
	hash [statemap.BlockSize]uint64

	emitted []M // outputs of a block of keyed calls

	update updating[K, V] // scratch of an update operator

	before, inserted, calls int64 // for Stats
	metered                 int64 // calls when the meter was told last
	busy                    bool
}

func newPartition[K comparable, V, S, M any](op *Operator[K, V, S, M], n int) *Partition[K, V, S, M] {
	p := &Partition[K, V, S, M]{op: op, n: n}
	p.out.pool = op.outputs
	p.state.clone = op.clone
	p.state.close()
	p.call.State = &p.state
	return p
}

// begin opens the next version after prev, discarding an earlier attempt at it.
func (p *Partition[K, V, S, M]) begin(t *rdd.Task, line *lineage[K, S], prev *statemap.Map[K, S], batch Batch, prevTime int64) error {
	if p.busy {
		return p.op.fail(p.n, ErrOverlap)
	}
	if err := p.state.kept(); err != nil {
		return p.op.fail(p.n, fmt.Errorf("a function kept its state handle: %w", err))
	}
	p.out.drop()
	m, err := line.begin(prev)
	if err != nil {
		return p.op.fail(p.n, err)
	}
	p.openIndex(line, m, nanos(batch.Time))
	p.busy = true
	p.update.reset()
	p.settle()
	p.before, p.inserted, p.calls, p.metered = int64(m.Len()), 0, 0, 0
	p.line, p.m, p.task = line, m, t
	p.batch, p.now, p.prev = batch, nanos(batch.Time), prevTime
	p.call.Batch = batch
	t.Operator, t.Key = p.op.name, p.errorKey
	return nil
}

// end lets go of everything that belongs to the attempt and closes the handle. It is deferred,
// so it also runs when a user function panics.
func (p *Partition[K, V, S, M]) end() {
	p.state.close()
	p.busy = false
	clear(p.exp)
	p.exp = p.exp[:0]
	if p.row < len(p.keys) { // a panic's key is asked for later
		p.one[0] = p.keys[p.row]
		p.keys, p.row = p.one[:], 0
	}
	p.update.reset()
	clear(p.call.out)
	p.call.out = p.call.out[:0]
	p.task = nil
}

// errorKey is the key of the call running now.
func (p *Partition[K, V, S, M]) errorKey() any {
	if p.row < len(p.keys) {
		return p.keys[p.row]
	}
	return nil
}

// locate moves the task's cursor to the record whose call is running.
func (p *Partition[K, V, S, M]) locate() {
	if p.at != nil {
		p.at(p.row)
	}
}

// failed makes the error of the record whose call is running.
func (p *Partition[K, V, S, M]) failed(err error) error {
	p.locate()
	return p.task.Fail(p.op.name, p.errorKey(), err)
}

// rows runs the records of one row block.
func (p *Partition[K, V, S, M]) rows(r *rdd.Rows[K, V]) error {
	base := 0
	p.at = func(row int) { p.task.Origin = r.Origin(base + row) }
	defer p.locate() // before a panic is turned into the record's error
	if p.task.Guard != nil {
		for i := range r.N {
			base = i
			r.At(p.task, i)
			err := p.task.Guard.Record(p.task, func() error {
				return p.records(r.Hash[i:i+1], r.Key[i:i+1], r.Value[i:i+1])
			})
			if err != nil {
				return err
			}
		}
		p.settle()
		return p.measure()
	}
	for base < r.N {
		n := min(p.op.blockSize, r.N-base)
		if err := p.records(r.Hash[base:base+n], r.Key[base:base+n], r.Value[base:base+n]); err != nil {
			return err
		}
		base += n
	}
	p.settle()
	return p.measure()
}

// meterEvery is how many calls lie between two words to the meter.
const meterEvery = 16 << 10

// measure tells the meter how far the partition has grown.
func (p *Partition[K, V, S, M]) measure() error {
	if p.op.meter == nil || p.calls-p.metered < meterEvery {
		return nil
	}
	p.metered = p.calls
	return p.op.meter(p.n, p.m.HeapBytes(), int64(p.m.Len()))
}

// settle ends a run of calls that all went well. After a failed one the key stays known until
// the task has made its error.
func (p *Partition[K, V, S, M]) settle() { p.keys, p.row, p.at = nil, 0, nil }

// records runs up to one block of records: looks their keys up together, calls the function for
// each, and applies what the calls did. On an error nothing of the block has been applied and no
// output kept, so a guarded record, a block of its own, leaves nothing behind.
func (p *Partition[K, V, S, M]) records(hashes []uint64, keys []K, values []V) error {
	p.keys, p.row = keys, 0
	if p.op.checkKeys {
		if err := p.check(keys); err != nil {
			return err
		}
	}
	if err := p.m.Resolve(&p.block, hashes, keys); err != nil {
		return p.op.fail(p.n, err)
	}
	var err error
	switch p.op.fn.kind {
	case kindPlain:
		err = p.callPlain(keys, values)
	case kindKeyed:
		err = p.callKeyed(keys, values)
	default:
		err = p.callTimed(keys, values)
	}
	if err != nil {
		return err
	}
	if err := p.m.Apply(&p.block); err != nil {
		return p.op.fail(p.n, err)
	}
	p.calls += int64(len(keys))
	p.inserted += int64(len(p.block.Inserted()))
	p.index()
	return nil
}

// check refuses keys that equal nothing.
func (p *Partition[K, V, S, M]) check(keys []K) error {
	for i, k := range keys {
		if err := p.op.key.Check(k); err != nil {
			p.row = i
			return p.failed(err)
		}
	}
	return nil
}

// cancelled is asked once per row block.
func cancelled(t *rdd.Task) error {
	if t.Ctx == nil || t.Ctx.Err() == nil {
		return nil
	}
	return t.Ctx.Err()
}

// record ends the batch.
func (p *Partition[K, V, S, M]) record() Record[K, S, M] {
	s := Stats{
		Keys: int64(p.m.Len()), Calls: p.calls, TimedOut: int64(len(p.exp)), Changed: int64(p.m.DeltaLen()),
		Inserted: p.inserted, Removed: p.before + p.inserted - int64(p.m.Len()), HeapBytes: p.m.HeapBytes(),
	}
	if g := p.task.Guard; g != nil {
		s.Skipped = g.Skipped()
	}
	return Record[K, S, M]{StateMap: p.m, Mapped: Chunks[M](p.out.take()), Stats: s}
}
