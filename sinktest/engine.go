package sinktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// engine is a run: it does with units what the real engine does, step by step.
type engine struct {
	c      []Case
	root   *ledger
	in     *vfs.Faults
	epochs uint64
	// value is what an attempt of a term computes.
	value func(epoch, term uint64) string
	// delta is what of it is in the state; nil is all.
	delta func(epoch, term uint64) string

	id      string // of the run
	term    uint64
	units   []sink.Unit
	adopted []uint64
}

// run runs until all epochs are committed, or this run must end.
func (e *engine) run(ctx context.Context) error {
	if e.in == nil {
		e.in = &vfs.Faults{}
	}
	for _, c := range e.c {
		e.units = append(e.units, guard(c.Open(e.in), e.in))
	}
	defer func() {
		for _, u := range e.units {
			_ = u.Close()
		}
	}()
	for range 10 {
		if err := e.once(ctx); !errors.Is(err, errRestart) {
			return err
		}
	}
	return errors.New("restarts without end")
}

func (e *engine) once(ctx context.Context) error {
	if err := e.ask("owner", func(l *ledger) error { l.term++; e.term = l.term; return nil }); err != nil {
		return err
	}
	if e.id == "" { // one that begins anew stays the same run
		e.id = fmt.Sprint("run-", e.term)
	}
	for _, u := range e.units { // P1: fence everything before anything is read
		if err := e.fence(ctx, u); err != nil {
			return err
		}
	}
	mems := make([]*sink.Memory, len(e.units))
	for i, u := range e.units {
		err := retry(func() error {
			m, ok, err := u.Memory(ctx)
			if ok && err == nil {
				mems[i] = &m
			}
			return err
		})
		if errors.Is(err, sink.ErrFenced) { // P2: by whom?
			err = errors.Join(e.owner(), err)
		}
		if err != nil {
			return err
		}
	}
	var newest uint64
	var last record
	err := e.ask("newest", func(l *ledger) error {
		for n, r := range l.commits {
			if n > newest {
				newest, last = n, r
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for n := newest + 1; n <= e.epochs; n++ {
		if last, err = e.epoch(ctx, n, last, mems); err != nil {
			return err
		}
		for i := range e.units {
			m := last.mems[i]
			mems[i] = &m
		}
	}
	return e.judge(newest, last, mems)
}

// judge compares the memories with the newest commit (P6).
func (e *engine) judge(newest uint64, last record, mems []*sink.Memory) error {
	if newest >= e.epochs && newest > 0 {
		for i, u := range e.units {
			if want, ok := last.mems[i]; ok && (mems[i] == nil || *mems[i] != want) {
				return e.refuse("unit %s has %v, commits/%d says %v", u.Name(), mems[i], newest, want)
			}
		}
	}
	return nil
}

// fence fences until it is known that this run is the newest one (P2).
func (e *engine) fence(ctx context.Context, u sink.Unit) error {
	err := retry(func() error {
		return u.Fence(ctx, sink.Fence{Root: e.root.id, Run: e.id, Term: e.term})
	})
	if err != nil {
		return err
	}
	return e.owner()
}

func (e *engine) owner() error {
	return e.ask("owner check", func(l *ledger) error {
		if l.term > e.term {
			return errNotOwner
		}
		return nil
	})
}

// refuse ends a run. What does not fit may be the doing of a newer run, between
// the reading of one thing and of the other: then it is no fault of the root.
func (e *engine) refuse(format string, args ...any) error {
	if err := e.owner(); err != nil {
		return err
	}
	return fmt.Errorf("%w: "+format, append([]any{errRefused}, args...)...)
}

// epoch computes, adopts or finishes one epoch.
func (e *engine) epoch(ctx context.Context, n uint64, last record, mems []*sink.Memory) (record, error) {
	var writer uint64
	has := 0
	for i, u := range e.units {
		want, ok := last.mems[i]
		switch m := mems[i]; {
		case m == nil && !ok, m != nil && ok && *m == want:
		case m != nil && m.Epoch == n:
			has++
			writer = max(writer, m.Term)
		default:
			return record{}, e.refuse("unit %s has %v, the newest commit is %d with %v", u.Name(), m, n-1, want)
		}
	}
	r := record{term: e.term, mems: map[int]sink.Memory{}}
	if has > 0 && has == len(e.units) {
		return e.adopt(n, writer, r, mems)
	}
	if err := e.ask("plan", func(l *ledger) error {
		if l.plans[n] > e.term {
			return errNotOwner
		}
		l.plans[n] = e.term
		return nil
	}); err != nil {
		return r, err
	}
	r.value = e.value(n, e.term)
	state := r.value
	if e.delta != nil {
		state = e.delta(n, e.term)
	}
	r.chain = sink.SumOf(fmt.Append(nil, last.chain, n, state))
	if err := e.owner(); err != nil {
		return r, err
	}
	if err := e.ask("deltas", func(l *ledger) error { l.deltas[[2]uint64{n, e.term}] = r.delta; return nil }); err != nil {
		return r, err
	}
	todo := make([]sink.Writer, len(e.units))
	for i, u := range e.units {
		w, err := sink.NewWriter(u, n, e.c[i].bind(u, e.root.id, n, r.value), nil)
		if err != nil {
			return r, err
		}
		todo[i] = w
		if m := mems[i]; m != nil && m.Epoch == n { // out already: a dry run must give its digest
			out, err := w.Prepare(ctx, true)
			if err != nil {
				return r, err
			}
			if out != m.Output || sink.Digest([]sink.Sum{r.chain}, out) != m.Digest {
				return r, errDiffers
			}
			r.mems[i] = *m
			todo[i] = nil
		}
	}
	for i, w := range todo {
		if w == nil {
			continue
		}
		before := uint64(0)
		if mems[i] != nil {
			before = mems[i].Epoch
		}
		m, err := e.write(ctx, w, n, before, r.chain)
		if err != nil {
			return r, err
		}
		r.mems[i] = m
	}
	return r, e.create(n, r)
}

// adopt commits what every unit has already, without computing (P6).
func (e *engine) adopt(n, writer uint64, r record, mems []*sink.Memory) (record, error) {
	err := e.ask("adopt", func(l *ledger) error {
		d, ok := l.deltas[[2]uint64{n, writer}]
		if !ok {
			return errNoDeltas
		}
		r.delta = d
		return nil
	})
	if errors.Is(err, errNoDeltas) {
		return r, e.refuse("no deltas of term %d", writer)
	}
	if err != nil {
		return r, err
	}
	for i, u := range e.units {
		if sink.Digest([]sink.Sum{r.chain}, mems[i].Output) != mems[i].Digest {
			return r, e.refuse("the deltas of term %d do not give the digest of unit %s", writer, u.Name())
		}
		r.mems[i] = *mems[i]
	}
	e.adopted = append(e.adopted, n)
	return r, e.create(n, r)
}

// write writes an epoch to a unit, through fences and lost answers (P2).
func (e *engine) write(ctx context.Context, w sink.Writer, n, before uint64, chain sink.Sum) (m sink.Memory, err error) {
	u := w.Unit()
	for range 10 {
		out := sink.Sum{}
		err = retry(func() (err error) { out, err = w.Prepare(ctx, false); return err })
		m = sink.Memory{Epoch: n, Term: e.term, Output: out, Digest: sink.Digest([]sink.Sum{chain}, out)}
		if err == nil {
			err = retry(func() error { return w.Commit(ctx, m) })
		}
		if !errors.Is(err, sink.ErrFenced) && !errors.Is(err, sink.ErrUnknown) {
			return m, err
		}
		if err := e.owner(); err != nil {
			return m, err
		}
		if err := e.fence(ctx, u); err != nil {
			return m, err
		}
		var now sink.Memory
		err = retry(func() (err error) { now, _, err = u.Memory(ctx); return err })
		switch {
		case err != nil:
			return m, err
		case now.Epoch == n && now.Term == e.term:
			return now, nil
		case now.Epoch != before:
			return m, e.refuse("unit %s has epoch %d of term %d after a fence", u.Name(), now.Epoch, now.Term)
		}
	}
	return m, fmt.Errorf("epoch %d: fenced without end: %w", n, err)
}

// create makes commits/N, and looks at the owner afterwards (P3, P4).
func (e *engine) create(n uint64, r record) error {
	var there record
	var taken bool
	err := e.ask("commit", func(l *ledger) error {
		if there, taken = l.commits[n]; !taken {
			l.commits[n] = r
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case taken && there.term > e.term:
		return errNotOwner
	case taken && there.term < e.term:
		return errRestart
	case taken && (there.delta != r.delta || !maps.Equal(there.mems, r.mems)):
		return fmt.Errorf("commits/%d of term %d is another one", n, e.term)
	}
	return e.owner()
}

// ask is a request to the root.
func (e *engine) ask(what string, do func(l *ledger) error) error {
	return retry(func() error {
		return vfs.Inject(e.in, vfs.Call{Kind: vfs.KindOther, Path: "root/" + what}, func() error {
			e.root.mu.Lock()
			defer e.root.mu.Unlock()
			return do(e.root)
		})
	})
}

// named says that an error tells what to do, so that the call is not made again.
func named(err error) bool {
	return slices.ContainsFunc([]error{
		sink.ErrNotOwner, sink.ErrFenced, sink.ErrUnknown, sink.ErrEpoch, sink.ErrMisuse, sink.ErrDamaged,
		errNotOwner, errRefused, errNoDeltas, errDiffers, errRestart, context.Canceled,
	}, func(target error) bool { return errors.Is(err, target) })
}

// retry makes a call again after an error that may pass.
func retry(do func() error) (err error) {
	for range 3 {
		if err = do(); err == nil || named(err) {
			return err
		}
	}
	return err
}
