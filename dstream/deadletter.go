package dstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/sink"
)

// Letter is a record that a function failed for, and why.
type Letter[T any] struct {
	// Record is the record as its source gave it. There is none where the call that
	// failed was for no record of the batch: a key that timed out, a row that a stateful
	// operator had emitted, or a row of a window that an earlier batch had read.
	Record Option[T]
	// Batch is the batch in which it failed: the same one if the batch is redone.
	Batch Batch
	// Source, Partition and Offset say where the record is from. Source is "" for a
	// call without a record, and on a checkpoint for a row of a window that an earlier
	// batch had read: such letters come first, by operator, key and reason.
	Source    string
	Partition string
	Offset    int64
	// Operator is the operator whose function failed.
	Operator string
	// Key is the key at work in a stateful operator, else nil.
	Key any
	// Row is what had to be processed where that is known and is no longer the record,
	// such as a group of values behind GroupByKey; else nil. Where a row was made of
	// several records, Record is one of them.
	Row any
	// Err is what the function returned, or a *rdd.PanicError with the stack.
	Err error
}

// Reason is the text of Err. A batch that is redone must give the same letters to an
// exactly-once sink, so errors of functions must not depend on the run: no addresses,
// no times of day, no random numbers.
func (l Letter[T]) Reason() string {
	if l.Err == nil {
		return ""
	}
	return l.Err.Error()
}

// DeadLetters delivers the bad records of a source to an exactly-once sink: those for
// which a function failed or panicked, in whatever operator behind the source, as the
// source gave them. They become visible with the commit of the epoch that could not
// process them, each once, whatever crashes; while they cannot be written, nothing of
// the batch is committed. The others of the batch are as if they had not been there:
// what they had changed in a state is taken back.
//
// in is the stream of a source (From, kafka.DirectStream, ReceiverStream …). With
// this call, the policy of its records is DeadLetter, unless WithRecordPolicy or
// OnError say otherwise. It needs a checkpoint; ForeachDeadLetter does not. name is the
// output's name in the job, as for Output.
//
// What counts as bad is a row: of a record that became several rows which a shuffle
// then took apart, the others stay, and each one that fails is a letter. A row behind
// a group, a reduction or a window, and a call of UpdateStateByKey, stand for several
// records and are one letter. A failure of a function that sees a whole partition
// (MapPartitions, ForeachRDD) fails the batch. Letters come in the order of source,
// partition and offset; their number is in Progress, and WithMaxBadRecords bounds it.
func DeadLetters[T any](in Stream[T], name string, s sink.Sink[Letter[T]]) {
	wrong := sinkWrong(name, s)
	o := addLetters(in, "DeadLetters", wrong, []OpOption{Name(name)}, func(context.Context, Batch, Letter[T]) error { return nil })
	ssc := o.node.ssc
	ssc.mu.Lock()
	defer ssc.mu.Unlock()
	o.unit = s.Unit
	o.bind = func(b *batchRun) (sink.Output, error) {
		rows := lettersOf[T](b, o.node)
		return sink.Bind(s, name, 1, func(ctx context.Context, _ int, yield func(Letter[T]) error) error {
			for _, l := range rows {
				if err := yield(l); err != nil {
					return err
				}
			}
			return ctx.Err()
		}), nil
	}
}

// ForeachDeadLetter calls f for every bad record of a source, as DeadLetters delivers
// them, in order and on one goroutine: when the plain outputs of the batch have run
// and before it is committed. It works without a checkpoint. An error of f fails the
// output, which is tried again as often as WithTaskRetries says, and then the batch. So
// f may see a letter more than once. The output's name is that of the source and
// " dead letters", unless Name gives another one.
func ForeachDeadLetter[T any](in Stream[T], f func(ctx context.Context, b Batch, l Letter[T]) error, opts ...OpOption) {
	addLetters(in, "ForeachDeadLetter", nilFunction(f == nil), opts, f)
}

// addLetters registers an output of letters.
func addLetters[T any](in Stream[T], kind string, wrong error, opts []OpOption, f func(context.Context, Batch, Letter[T]) error) *output {
	p := nodeOf(in)
	options, faults := opOptions(kind, opts, true, false)
	o := &output{node: p, name: options.name, kind: kind, caller: caller(), checks: options.checks, letters: true}
	if p == nil || p.ssc == nil {
		panic(&Fault{Caller: o.caller, Call: "dstream." + kind, Err: errNilStream})
	}
	if !options.nameSet {
		o.name = p.label() + " dead letters"
	}
	if p.src == nil && wrong == nil {
		wrong = fmt.Errorf("stream %q is not that of a source: letters are records as a source gave them", p.label())
	}
	o.run = func(b *batchRun, c *outputContext) error {
		for _, l := range lettersOf[T](b, p) {
			if err := f(c.ctx, b.batch, l); err != nil {
				return err
			}
		}
		return nil
	}
	o.rows = func(b *batchRun, _ *outputContext) (any, error) { return lettersOf[T](b, p), nil }
	o.parts = func(b *batchRun, _ *outputContext) (any, error) { return [][]Letter[T]{lettersOf[T](b, p)}, nil }
	if p.src != nil {
		p.src.reread = rereading[T]
	}
	o.register(append([]error{wrong}, faults...))
	return o
}

// lettersOf gives the letters of a source in a batch, when they are settled.
func lettersOf[T any](b *batchRun, source *node) []Letter[T] {
	out := []Letter[T]{}
	for _, d := range b.letters[source] {
		l := Letter[T]{
			Batch: b.batch, Source: d.from.Stream, Partition: d.from.Partition, Offset: d.from.Offset,
			Operator: d.err.Operator, Key: d.err.Key, Err: d.err.Err,
		}
		if v, ok := d.record.(T); ok {
			l.Record = Some(v)
		}
		if d.row != nil {
			l.Row = d.row
		}
		out = append(out, l)
	}
	return out
}

// sinkWrong says what is wrong with the arguments of an exactly-once output.
func sinkWrong[T any](name string, s sink.Sink[T]) error {
	var wrong []error
	if name == "" {
		wrong = append(wrong, errors.New("the output has no name"))
	}
	if s.Unit == nil || isNilPointer(s.Unit) {
		wrong = append(wrong, errors.New("the sink has no unit"))
	}
	if s.Encode == nil {
		wrong = append(wrong, errors.New("the sink has no Encode function"))
	}
	return errors.Join(wrong...)
}

// tapped is emit, which also tells the task the record that is under way.
func tapped[T any](t *rdd.Task, emit func(T) error) func(T) error {
	var record T
	t.Record = func() any { return record }
	return func(v T) error {
		record = v
		return emit(v)
	}
}
