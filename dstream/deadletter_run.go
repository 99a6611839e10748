package dstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// deadLetter is a letter as the engine has it.
type deadLetter struct {
	box    *node // the source whose letters it is among
	record any   // nil: not at hand
	row    any
	err    *rdd.RecordError
	from   rdd.Origin // zero for what no source gave, such as a stateful operator's output

	// For an order that does not depend on the run.
	key, reason string
	task        string
	partition   int
}

func (d *deadLetter) compare(e *deadLetter) int {
	return cmp.Or(
		cmp.Compare(d.from.Stream, e.from.Stream), cmp.Compare(d.from.Partition, e.from.Partition), cmp.Compare(d.from.Offset, e.from.Offset),
		cmp.Compare(d.err.Operator, e.err.Operator), cmp.Compare(d.key, e.key), cmp.Compare(d.reason, e.reason),
		cmp.Compare(d.task, e.task), cmp.Compare(d.partition, e.partition),
	)
}

// badRecords is what one attempt leaves out.
type badRecords struct {
	skipped []skipKey
	letters []*deadLetter
	one     error // of one of them
}

func (b *badRecords) add(o *badRecords) {
	b.skipped = append(b.skipped, o.skipped...)
	b.letters = append(b.letters, o.letters...)
	b.one = cmp.Or(b.one, o.one)
}

func (b *badRecords) count() int64 { return int64(len(b.skipped) + len(b.letters)) }

// badScope gathers what the actions of one attempt of an output leave out. It counts
// only if the attempt succeeds. An action finds it by the context that the output was
// given.
type badScope struct {
	mu  sync.Mutex
	bad badRecords
}

type scopeKey struct{}

func scopeOf(ctx context.Context) *badScope {
	s, _ := ctx.Value(scopeKey{}).(*badScope)
	return s
}

// recordRules are the record policies of a run. A nil one is Fail for all.
type recordRules struct {
	set       bool
	policy    RecordPolicy
	operators map[string]RecordPolicy // that have one of their own, by label
	boxes     map[string]*node        // sources by label: itself if it has letters, else nil
	behind    map[string]*node        // by operator, a source of it that has letters
	guards    bool                    // a policy other than Fail holds somewhere
	max       *maxBad
	planned   atomic.Int64 // the running batch has so many records at most
}

// letterBoxes are the sources that have a place for letters.
func (ssc *StreamingContext) letterBoxes() map[*node]bool {
	boxes := map[*node]bool{}
	for _, o := range ssc.outputs {
		if o.letters && o.node.src != nil {
			boxes[o.node] = true
		}
	}
	return boxes
}

func (ssc *StreamingContext) recordRules() *recordRules {
	k := &recordRules{
		set: ssc.cfg.policySet, policy: ssc.cfg.policy, max: ssc.cfg.maxBad,
		operators: map[string]RecordPolicy{}, boxes: map[string]*node{}, behind: map[string]*node{},
	}
	boxes := ssc.letterBoxes()
	k.guards = k.policy != Fail || !k.set && len(boxes) > 0
	for _, n := range ssc.nodes {
		if n.src != nil {
			k.boxes[n.label()] = nil
		}
		if boxes[n] {
			k.boxes[n.label()] = n
		}
		if n.policy != nil {
			k.operators[n.label()] = *n.policy
			k.guards = k.guards || *n.policy != Fail
		}
		for _, s := range n.sources() {
			if boxes[s] && k.behind[n.label()] == nil {
				k.behind[n.label()] = s
			}
		}
	}
	return k
}

// of gives the policy for a bad record, and the source whose letters it would be among.
func (k *recordRules) of(err *rdd.RecordError) (RecordPolicy, *node) {
	box, given := k.boxes[err.Stream]
	if !given {
		box = k.behind[err.Operator] // of no record, or of one that no source gave
	}
	p, own := k.operators[err.Operator]
	switch {
	case own:
	case k.set:
		p = k.policy
	case box != nil:
		p = DeadLetter
	}
	if p == DeadLetter && box == nil {
		p = Fail
	}
	return p, box
}

// bad is told of a bad record in guarded mode. Its error ends the task. partition is the
// task's: below a Union t has that of whatever is read there, and rows in memory are not read
// as those that were brought back.
func (k *recordRules) bad(b *badRecords, t *rdd.Task, partition int, row any, err *rdd.RecordError) error {
	policy, box := k.of(err)
	switch policy {
	case Skip:
		b.skipped = append(b.skipped, skipKey{err.Operator, err.Stream})
	case DeadLetter:
		if sabotage.On("letter-lost") {
			break
		}
		if sabotage.On("letters-by-part-of-union") {
			partition = t.Partition
		}
		d := &deadLetter{box: box, row: row, err: err, reason: err.Err.Error(), task: t.Name, partition: partition}
		if err.Key != nil {
			d.key = fmt.Sprint(err.Key)
		}
		if err.Stream == box.label() {
			d.from = rdd.Origin{Stream: err.Stream, Partition: err.Partition, Offset: err.Offset}
			if t.Record != nil {
				d.record, d.row = t.Record(), nil
			}
		}
		b.letters = append(b.letters, d)
	default:
		return err
	}
	b.one = err
	return k.check(b.count(), k.planned.Load(), err)
}

// check says whether a batch that reads so many records has too many bad ones.
func (k *recordRules) check(bad, records int64, one error) error {
	if !k.max.over(bad, records) || sabotage.On("bad-records-unbounded") {
		return nil
	}
	return &BadRecordsError{Bad: bad, Records: records, Max: k.max.n, Share: k.max.share, Err: one}
}

// computing notes how many records the batch has at most.
func (r *run) computing() {
	var n int64
	for _, in := range r.inputs {
		for _, x := range in.plan.Ranges {
			n += x.Until - x.From
		}
	}
	r.exec.rules.planned.Store(n)
}

// settle makes the letters of the batch final, when all functions have run: in their
// order, with the records that were not at hand where a function failed.
func (r *run) settle() (name string, err error) {
	bad := r.exec.tally.left()
	var read int64
	for _, in := range r.inputs {
		for _, got := range in.reads {
			read += got.rows
		}
	}
	if err := r.exec.rules.check(bad.count(), read, bad.one); err != nil {
		return "", err
	}
	if len(bad.letters) == 0 {
		return "", nil
	}
	if !sabotage.On("letters-as-they-came") {
		slices.SortStableFunc(bad.letters, (*deadLetter).compare)
	}
	for _, in := range r.inputs {
		if err := r.fetch(in, bad.letters); err != nil {
			return in.name(), err
		}
	}
	letters := map[*node][]*deadLetter{}
	for _, d := range bad.letters {
		letters[d.box] = append(letters[d.box], d)
	}
	r.cur.b.letters = letters
	return "", nil
}

// fetch reads the records of letters again that failed behind a shuffle, or wherever
// they were not at hand. What an earlier batch had read (rows of a window) is not
// asked for: its source may have let it go.
func (r *run) fetch(in *input, letters []*deadLetter) error {
	if in.reread == nil {
		return nil
	}
	for _, x := range in.plan.Ranges {
		missing, last := map[int64][]*deadLetter{}, int64(-1)
		for _, d := range letters {
			e := d.from
			if d.record == nil && d.box == in.node && e.Stream == in.name() && e.Partition == x.Partition && e.Offset >= x.From && e.Offset < x.Until {
				missing[e.Offset] = append(missing[e.Offset], d)
				last = max(last, e.Offset)
			}
		}
		if len(missing) == 0 {
			continue
		}
		err := r.retry(r.hard, in, func() error {
			return in.reread(r.hard, in.src, x, last, func(offset int64, record any) {
				for _, d := range missing[offset] {
					d.record = record
				}
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// errReadEnough ends a read behind the last record that is asked for.
var errReadEnough = errors.New("dstream: read enough")

// rereading reads a planned range up to an offset.
func rereading[T any](ctx context.Context, src planner, x source.Range, last int64, give func(offset int64, record any)) error {
	s, ok := src.(source.Source[T])
	if !ok {
		return fmt.Errorf("the source is a %T, of other records", src)
	}
	err := s.Read(ctx, x, func(offset int64, v T) error {
		if offset <= last {
			give(offset, v)
		}
		if offset >= last {
			return errReadEnough
		}
		return nil
	})
	if errors.Is(err, errReadEnough) {
		return nil
	}
	return err
}
