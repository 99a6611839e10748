package dstream

import (
	"errors"
	"fmt"
	"slices"
)

// RecordPolicy says what becomes of a record whose function fails. That of the
// context holds (WithRecordPolicy), unless an operator has one of its own
// (DStream.OnError). Where a policy other than Fail holds, the partition runs again in
// a guarded mode, which is slower; a partition without bad records costs nothing. What
// the failed record had changed in the state is taken back.
type RecordPolicy int

const (
	// Fail ends the run with the record's error; nothing of the epoch is
	// committed. It is the default.
	Fail RecordPolicy = iota
	// Skip drops the record as if it had not come, and counts it.
	Skip
	// DeadLetter drops the record and delivers it, with its place and the error, to
	// the DeadLetters of its source. A source that has some has this policy, unless
	// another one was said.
	DeadLetter
)

func (p RecordPolicy) String() string {
	switch p {
	case Fail:
		return "Fail"
	case Skip:
		return "Skip"
	case DeadLetter:
		return "DeadLetter"
	}
	return fmt.Sprintf("RecordPolicy(%d)", int(p))
}

func (p RecordPolicy) check() error {
	if p < Fail || p > DeadLetter {
		return fmt.Errorf("%v is no record policy: want Fail, Skip or DeadLetter", p)
	}
	return nil
}

// WithRecordPolicy says what becomes of a record whose function fails or
// panics. Default: DeadLetter for the records of sources that have DeadLetters, Fail
// for all others.
func WithRecordPolicy(p RecordPolicy) ContextOption {
	return option("WithRecordPolicy", func(c *config) error {
		c.policy, c.policySet = p, true
		return p.check()
	})
}

// WithMaxBadRecords fails a batch that skips or dead-letters too many records, with a
// *BadRecordsError and before anything of it is committed: a fault that every record has
// is then no reason to empty a topic into another one. Too many are more than n records
// and, if share is not 0, more than that share of the records that the batch reads. A
// record counts as often as it fails. n is at least 0, share from 0 to 1. Default: no
// limit, but all are counted in Progress.
func WithMaxBadRecords(n int64, share float64) ContextOption {
	return option("WithMaxBadRecords", func(c *config) error {
		c.maxBad = &maxBad{n, share}
		if n < 0 || !(share >= 0 && share <= 1) {
			return fmt.Errorf("at most %d bad records and a share of %v: want at least 0, and a share from 0 to 1", n, share)
		}
		return nil
	})
}

// ownPolicy lists the operators that can have a policy of their own: those that call
// their function for one record at a time.
var ownPolicy = []string{
	"Map", "MapErr", "MapPair", "MapPairErr", "KeyBy", "FlatMap", "FlatMapErr", "FlatMapSeq", "FlatMapEmit", "Filter", "FilterErr",
	"MapValues", "MapValuesErr", "FlatMapValues", "MapWithState", "Keyed", "UpdateStateByKey",
}

// OnError gives the function of this operator a record policy of its own, in the
// place of the context's. It applies to operators that call their function for one
// record, or one key, at a time. It returns the stream.
func (d *DStream[T]) OnError(p RecordPolicy) *DStream[T] {
	d.change("OnError", func(n *node) error {
		if !slices.Contains(ownPolicy, n.kind) {
			return fmt.Errorf("a %s has no record policy of its own: the context's holds (WithRecordPolicy)", n.kind)
		}
		n.policy, n.policyAt = &p, caller()
		return p.check()
	})
	return d
}

// recordFaults lists policies that cannot be followed.
func (ssc *StreamingContext) recordFaults() (faults []*Fault) {
	boxes := ssc.letterBoxes()
	byLabel := map[string]int{}
	for _, n := range ssc.nodes {
		byLabel[n.label()]++
	}
	wanted := map[*node]bool{}
	none := func(n *node, at, call, who string) {
		if wanted[n] = true; !boxes[n] {
			faults = append(faults, &Fault{Caller: at, Call: call,
				Err: fmt.Errorf("%s sends bad records of source %q to dead letters, and it has no place for them: add dstream.DeadLetters or ForeachDeadLetter for it", who, n.label())})
		}
	}
	cfg := &ssc.cfg
	for _, n := range ssc.nodes {
		switch {
		case n.src != nil && cfg.policySet && cfg.policy == DeadLetter:
			none(n, n.caller, "dstream."+n.kind, "WithRecordPolicy")
		case n.policy == nil:
		case byLabel[n.label()] > 1:
			faults = append(faults, &Fault{Caller: n.policyAt, Call: "dstream.DStream.OnError",
				Err: fmt.Errorf("%d streams are named %q: an operator with a policy of its own needs a name that no other has", byLabel[n.label()], n.label())})
		case *n.policy == DeadLetter:
			for _, s := range n.sources() {
				none(s, n.policyAt, "dstream.DStream.OnError", fmt.Sprintf("operator %q", n.label()))
			}
		}
	}
	for _, o := range ssc.outputs {
		if o.letters && o.node.src != nil && cfg.policySet && cfg.policy != DeadLetter && !wanted[o.node] {
			faults = append(faults, &Fault{Caller: o.caller, Call: "dstream." + o.kind,
				Err: fmt.Errorf("no record comes here: WithRecordPolicy(%v) holds, and no operator behind source %q has OnError(DeadLetter)", cfg.policy, o.node.label())})
		}
	}
	return faults
}

// sources lists the sources that a stream is computed from.
func (n *node) sources() (list []*node) {
	seen := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		if n.src != nil {
			list = append(list, n)
		}
		for _, p := range n.parents {
			visit(p)
		}
	}
	visit(n)
	return list
}

// maxBad bounds the bad records of a batch.
type maxBad struct {
	n     int64
	share float64
}

// over says whether bad records of a batch that reads so many are too many.
func (m *maxBad) over(bad, records int64) bool {
	return m != nil && bad > m.n && float64(bad) > m.share*float64(records)
}

// ErrBadRecords is the class of every *BadRecordsError.
var ErrBadRecords = errors.New("too many bad records")

// BadRecordsError says that a batch had more bad records than WithMaxBadRecords
// allows. Nothing of it is committed.
type BadRecordsError struct {
	Bad     int64   // so many at least
	Records int64   // that the batch reads; while it computes, so many at most
	Max     int64   // the limit
	Share   float64 // the limit
	Err     error   // what one of them failed with, a *rdd.RecordError
}

func (e *BadRecordsError) Error() string {
	share := ""
	if e.Share > 0 {
		share = fmt.Sprintf(" and a share of %v", e.Share)
	}
	return fmt.Sprintf("%v: %d of %d, and WithMaxBadRecords allows %d%s; one of them: %v", ErrBadRecords, e.Bad, e.Records, e.Max, share, e.Err)
}

// Is makes errors.Is(err, ErrBadRecords) true.
func (e *BadRecordsError) Is(target error) bool { return target == ErrBadRecords }

// Unwrap gives what one of the records failed with.
func (e *BadRecordsError) Unwrap() error { return e.Err }
