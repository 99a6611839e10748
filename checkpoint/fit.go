package checkpoint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/partitioner"
)

// fit is a job beside the metadata in force: what its epochs write, and what has
// to change first.
type fit struct {
	batch   []Operator // of the metadata that batches of this run name, by number
	job     []Operator // those of them that the job has
	changes []Change   // of each of job
	change  bool       // a change epoch is wanted
	after   []Operator // of the metadata that it brings
	numbers int        // the greatest number given, new ones included
	notices []Notice
}

// fitter compares a job with a root. It reads and writes nothing.
type fitter struct {
	cfg     *Config
	base    *Metadata // in force, nil if nothing is
	commit  *Commit   // the newest, or nil
	next    uint64    // the epoch that comes next
	pending bool      // it is a batch that is planned
	planned *Metadata // what its planner meant to bring into force, or nil
	out     fit
	refused []error
}

// fitJob says how the job fits, or all that refuses it (a *RefusedError).
func fitJob(cfg *Config, base *Metadata, commit *Commit, next uint64, pending bool) (fit, error) {
	return fitPlanned(cfg, base, commit, next, pending, nil)
}

// fitPlanned is fitJob for a pending batch whose planner had the metadata planned.
func fitPlanned(cfg *Config, base *Metadata, commit *Commit, next uint64, pending bool, planned *Metadata) (fit, error) {
	f := &fitter{cfg: cfg, base: base, commit: commit, next: next, pending: pending, planned: planned}
	if base == nil {
		f.base = &Metadata{Interval: cfg.Interval}
	}
	f.out.numbers = f.base.Numbers
	for i := range cfg.Operators {
		job := &cfg.Operators[i]
		if old := f.base.Operator(job.Name); old != nil {
			f.known(job, old)
		} else {
			f.fresh(job)
		}
	}
	f.missing()
	if old := f.base.Interval; old != cfg.Interval {
		f.tell(NoticeInterval, "", "the batch interval was %d ns, is now %d ns; the grid keeps its zero", old, cfg.Interval)
	}
	if len(f.refused) > 0 {
		return fit{}, &RefusedError{Reasons: f.refused}
	}
	byNumber := func(a, b Operator) int { return cmp.Compare(a.Number, b.Number) }
	slices.SortFunc(f.out.batch, byNumber)
	slices.SortFunc(f.out.after, byNumber)
	f.sortJob()
	return f.out, nil
}

// sortJob brings operators and their changes into the order of numbers.
func (f *fitter) sortJob() {
	order := make([]int, len(f.out.job))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(f.out.job[a].Number, f.out.job[b].Number) })
	job, changes := f.out.job, f.out.changes
	f.out.job, f.out.changes = nil, nil
	for _, i := range order {
		f.out.job = append(f.out.job, job[i])
		f.out.changes = append(f.out.changes, changes[i])
	}
}

func (f *fitter) refuse(err error) { f.refused = append(f.refused, err) }

func (f *fitter) tell(kind NoticeKind, operator, format string, args ...any) {
	f.out.notices = append(f.out.notices, Notice{Kind: kind, Operator: operator, Text: fmt.Sprintf(format, args...)})
}

// fresh is an operator that the root does not have: it starts in the first batch.
func (f *fitter) fresh(job *JobOperator) {
	f.out.numbers++
	op := job.Operator
	op.Partitioner = PartitionerName(op.Partitioner)
	op.Number, op.Layout, op.Since, op.Older = f.out.numbers, 0, f.next, nil
	// A sink may have the epoch already, with the chains of as many partitions as its
	// planner had; the job's own number may be that of another machine's cores.
	if f.pending && f.planned != nil && !job.PartitionsGiven && !sabotage.On("planned-partitions-forgotten") {
		if old := f.planned.Operator(job.Name); old != nil && old.Partitioner == op.Partitioner {
			op.Partitions = old.Partitions
		}
	}
	f.out.batch = append(f.out.batch, op)
	f.out.job = append(f.out.job, op)
	f.out.changes = append(f.out.changes, Change{Fresh: true})
	if f.commit != nil {
		f.tell(NoticeOperator, op.Name, "operator %q is new: it starts with epoch %d from its initial state", op.Name, f.next)
	}
}

// known is an operator that the root has.
func (f *fitter) known(job *JobOperator, old *Operator) {
	if !f.sameForm(job, old) {
		return
	}
	if job.Fits != nil {
		if err := job.Fits(old.Settings); err != nil {
			f.refuse(err)
			return
		}
	}
	now := job.Operator
	now.Number, now.Layout, now.Since = old.Number, old.Layout, old.Since
	now.Partitions, now.Partitioner = old.Partitions, old.Partitioner
	now.Older = f.older(old)
	migrate, ok := f.types(job, old, &now)
	if !ok {
		return
	}
	rescale, ok := f.layout(job, old)
	if !ok {
		return
	}
	after := now
	if migrate {
		after.Since = f.next
		if f.pending {
			now.Since = f.next
		}
	}
	if rescale {
		after.Layout, after.Since = old.Layout+1, f.next
		after.Partitioner = PartitionerName(job.Partitioner)
		if job.PartitionsGiven {
			after.Partitions = job.Partitions
		}
		// The bases are copies, of old schemas too.
		after.Older = slices.Clone(after.Older)
		for i := range after.Older {
			after.Older[i].Until = f.next
		}
		f.tell(NoticeChange, job.Name, "operator %q goes from %d partitions to %d", job.Name, old.Partitions, after.Partitions)
	}
	f.out.change = f.out.change || rescale || migrate && !f.pending
	f.out.after = append(f.out.after, after)
	f.out.batch = append(f.out.batch, now)
	f.out.job = append(f.out.job, now)
	f.out.changes = append(f.out.changes, Change{Migrated: migrate && f.pending, Old: old})
}

// older are the old schemas that states may still have.
func (f *fitter) older(old *Operator) []OldSchema {
	var out []OldSchema
	for _, o := range old.Older {
		if f.commit == nil || o.Until >= f.commit.Floor {
			out = append(out, o)
		}
	}
	return out
}

// sameForm refuses what no change of layout or type can bring about.
func (f *fitter) sameForm(job *JobOperator, old *Operator) bool {
	ok := true
	if job.Kind != old.Kind {
		f.refuse(&FormError{Operator: job.Name, What: "kind", Stored: old.Kind, Given: job.Kind})
		ok = false
	}
	if job.Deadlines != old.Deadlines {
		f.refuse(&FormError{Operator: job.Name, What: "form of times", Stored: formOf(old.Deadlines), Given: formOf(job.Deadlines)})
		ok = false
	}
	changes := codec.Compare(old.Key, job.Key)
	if codec.ClassOf(changes) == codec.Incompatible {
		f.refuse(&TypeError{Operator: job.Name, What: "key", Path: operatorFolder(old.Number),
			Err: &codec.SchemaError{Old: old.Key, New: job.Key, Changes: changes}})
		ok = false
	} else if job.KeyCodec != old.KeyCodec {
		f.refuse(&FormError{Operator: job.Name, What: "key encoding", Stored: old.KeyCodec, Given: job.KeyCodec})
		ok = false
	}
	return ok
}

func formOf(deadlines bool) string {
	if deadlines {
		return "deadlines"
	}
	return "update times"
}

// types compares the states. now gets the schema that is written from here on.
func (f *fitter) types(job *JobOperator, old *Operator, now *Operator) (migrate, ok bool) {
	now.State, now.StateCodec = job.State, job.StateCodec
	stored := append([]OldSchema{{State: old.State}}, now.Older...)
	for _, s := range stored {
		changes := codec.Compare(s.State, job.State)
		if codec.ClassOf(changes) != codec.Incompatible {
			continue
		}
		err := error(&codec.SchemaError{Old: s.State, New: job.State, Changes: changes})
		if job.Convert != nil {
			_, cerr := job.Convert(s.State)
			if cerr == nil {
				migrate = true
				continue
			}
			err = fmt.Errorf("%w; the migrations given do not lead there: %w", err, cerr)
		}
		f.refuse(&TypeError{Operator: job.Name, What: "state", Path: operatorFolder(old.Number), Err: err})
		return false, false
	}
	// Files name the codec: states that the new one can read must be rewritten
	// under its name.
	migrate = migrate || job.StateCodec != old.StateCodec
	switch {
	case migrate:
		now.Older = nil
		f.tell(NoticeTypes, job.Name, "operator %q: states stored as %s become %s", job.Name, old.State, job.State)
	case sabotage.On("old-types-forgotten"):
	case !old.State.Equal(job.State):
		now.Older = append(now.Older, OldSchema{State: old.State, Until: f.next - 1})
		f.tell(NoticeTypes, job.Name, "operator %q: states stored as %s are read as %s", job.Name, old.State, job.State)
	}
	return migrate, true
}

// layout compares partitions and partitioner.
func (f *fitter) layout(job *JobOperator, old *Operator) (rescale, ok bool) {
	name := PartitionerName(job.Partitioner)
	moved := name != old.Partitioner
	rescale = moved || job.PartitionsGiven && job.Partitions != old.Partitions
	if !rescale {
		return false, true
	}
	if !f.cfg.Rescale {
		if moved {
			f.refuse(&FormError{Operator: job.Name, What: "partitioner", Stored: old.Partitioner, Given: name})
		} else {
			f.refuse(&PartitionsError{Operator: job.Name, Stored: old.Partitions, Given: job.Partitions})
		}
		return false, false
	}
	if _, err := placer(job, name); err != nil {
		f.refuse(err)
		return false, false
	}
	return true, true
}

// missing looks for operators that the job lacks.
func (f *fitter) missing() {
	for i := range f.base.Operators {
		old := &f.base.Operators[i]
		if slices.ContainsFunc(f.cfg.Operators, func(j JobOperator) bool { return j.Name == old.Name }) {
			continue
		}
		if !slices.Contains(f.cfg.Drop, old.Name) {
			e := &MissingOperatorError{Operator: old.Name}
			if f.commit != nil {
				if oc := f.commit.Operator(old.Number); oc != nil {
					for _, p := range oc.Partitions {
						e.Keys += p.Keys
					}
				}
			}
			f.refuse(e)
			continue
		}
		f.out.change = true
		f.out.batch = append(f.out.batch, *old)
		f.tell(NoticeChange, old.Name, "operator %q is given up", old.Name)
	}
}

// placer gives the function that places keys for an operator of the job under a
// partitioner's name; job is nil if the job does not have the operator.
func placer(job *JobOperator, name string) (func(key []byte, n int) (int, error), error) {
	if job != nil && job.Place != nil && PartitionerName(job.Partitioner) == name {
		return job.Place, nil
	}
	if place, ok := partitioner.Stored(name); ok {
		return func(key []byte, n int) (int, error) { return place(key, n), nil }, nil
	}
	op := ""
	if job != nil {
		op = job.Name
	}
	return nil, fmt.Errorf("operator %q: its partitioner %q is a function that only a program has: start the program that has it once", op, name)
}

// PartitionerName gives the name of a partitioner without the number of
// partitions, as metadata has it: "hash" for "hash(8)".
func PartitionerName(s string) string {
	at := strings.LastIndexByte(s, '(')
	if at < 0 || !strings.HasSuffix(s, ")") {
		return s
	}
	if _, ok := parseNumber(s[at+1 : len(s)-1]); !ok {
		return s
	}
	return s[:at]
}

// sameOperators reports whether metadata with one would be that with the other.
func sameOperators(a, b []Operator) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
