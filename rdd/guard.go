package rdd

import (
	"errors"

	"github.com/statemill/statemill/internal/sabotage"
)

// Guard is the guarded mode of one attempt: records are pushed one at a time
// under recover; the rows that a record causes are staged at the edges (shuffle
// writers, kept rows, collectors) and written only when the whole record has succeeded.
//
// Only a *RecordError (a user function's error or panic) makes a record skipped;
// anything else ends the task. A failure inside a function that sees a whole
// partition (MapPartitions) ends the task too.
type Guard struct {
	// Skip, if not nil, is told of every skipped record: row is what was pushed (nil
	// where Record was called), t.Origin and t.Record say where it is from. Its error
	// ends the task. An attempt may still fail afterwards, so it must keep what it is
	// told until the attempt has succeeded.
	Skip func(t *Task, row any, err *RecordError) error

	edges   []Edge
	skipped int64
	parent  *Guard
}

// Edge is where a record's rows leave the fused chain. Between two records
// either Flush or Drop is called. Flush writes the staged rows, all or none.
type Edge interface {
	Flush() error
	Drop()
}

// Enlist adds an edge for the rest of the attempt.
func (g *Guard) Enlist(e Edge) { g.edges = append(g.edges, e) }

// Skipped is the number of records skipped so far in this attempt.
func (g *Guard) Skipped() int64 { return g.skipped }

// Record runs f for one record: its rows are flushed if f succeeds, dropped and
// the record skipped if f fails with a *RecordError or panics. t.Origin must name
// the record. The returned error ends the task.
func (g *Guard) Record(t *Task, f func() error) error {
	return guarded(t, g, func(struct{}) error { return f() }, struct{}{})
}

func guarded[T any](t *Task, g *Guard, emit func(T) error, v T) error {
	err := attempt(t, g, emit, v)
	if err == nil || err == errStop {
		return err
	}
	for _, e := range g.edges {
		if sabotage.On("guard-leaks-rows") {
			break
		}
		e.Drop()
	}
	var re *RecordError
	if t.Canceled(err) || !errors.As(err, &re) {
		return err
	}
	for p := g; p != nil; p = p.parent {
		p.skipped++
	}
	if g.Skip == nil {
		return nil
	}
	var row any = v
	if _, none := row.(struct{}); none { // of Record
		row = nil
	}
	return g.Skip(t, row, re)
}

func attempt[T any](t *Task, g *Guard, emit func(T) error, v T) (err error) {
	operator, key, depth := t.Operator, t.Key, t.depth()
	defer func() {
		if p := recover(); p != nil {
			err = t.panicked(p)
			t.leave(depth)
		}
		t.Operator, t.Key = operator, key
	}()
	if err = emit(v); err != nil && err != errStop {
		return err
	}
	for _, e := range g.edges {
		if ferr := e.Flush(); ferr != nil {
			return ferr
		}
	}
	return err
}

// guardEmit is put around the emit of whatever starts records: sources, readers
// of blocks, and what comes out of functions over whole partitions.
func guardEmit[T any](t *Task, emit func(T) error) func(T) error {
	g := t.Guard
	if g == nil {
		return emit
	}
	return func(v T) error { return guarded(t, g, emit, v) }
}

// below gives the task for what lies above a barrier (a function over a whole
// partition): its records are guarded by themselves, with their own edges.
func (t *Task) below() *Task {
	if t.Guard == nil {
		return t
	}
	if t.trail == nil {
		t.trail = &trail{}
	}
	sub := *t
	sub.Guard = &Guard{Skip: t.Guard.Skip, parent: t.Guard}
	return &sub
}
