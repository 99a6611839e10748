package sinktest

import (
	"context"
	"errors"
	"fmt"

	"github.com/statemill/statemill/sink"
)

type logUnit struct {
	client
	read uint64       // entries that were read
	mem  *sink.Memory // what they say
}

var errTaken = errors.New("the number is taken")

// put takes the next number of the log. Entries that it has not read are read.
func (u *logUnit) put(what string, e logEntry) error {
	err := u.ask(what, func(a *account) error {
		if uint64(len(a.entries)) == u.read || u.s.flaw == "an entry is replaced" {
			a.entries = append(a.entries[:u.read], e)
			if e.mem != nil {
				a.mem = e.mem
				u.s.rows = append(u.s.rows, e.rows...)
			}
			return nil
		}
		return errTaken
	})
	if err == nil {
		u.read++
	}
	return err
}

// next reads one more entry, if there is one.
func (u *logUnit) next() (e logEntry, ok bool, err error) {
	err = u.ask("read", func(a *account) error {
		if ok = u.read < uint64(len(a.entries)); ok {
			e = a.entries[u.read]
		}
		return nil
	})
	if err != nil || !ok {
		return e, false, err
	}
	u.read++
	if e.mem != nil {
		u.mem = e.mem
	}
	return e, true, nil
}

// Fence reads to the end of the log and appends a fence.
func (u *logUnit) Fence(ctx context.Context, f sink.Fence) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := u.take(f); err != nil {
		return err
	}
	u.fence, u.open, u.read, u.mem = &f, false, 0, nil
	u.gen++
	err := u.toEnd(f)
	if err != nil {
		u.fence = nil
	}
	return err
}

func (u *logUnit) toEnd(f sink.Fence) error {
	var early *sink.Memory
	for first := true; ; first = false {
		for {
			e, ok, err := u.next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if e.term > f.Term && u.s.flaw != "lower terms may fence" {
				return &sink.NotOwnerError{Unit: u.name, Term: f.Term, Newer: e.term}
			}
		}
		if first {
			early = u.mem
		}
		if u.s.flaw == "fence does nothing" { // CE11
			return nil
		}
		err := u.put("fence", logEntry{term: f.Term, run: f.Run})
		if err == nil && u.s.flaw == "memory from before the fence" {
			u.mem = early
		}
		if !errors.Is(err, errTaken) {
			return err
		}
	}
}

// Memory is what the entries say.
func (u *logUnit) Memory(ctx context.Context) (sink.Memory, bool, error) {
	if err := errors.Join(u.ready("memory"), ctx.Err()); err != nil {
		return sink.Memory{}, false, err
	}
	if u.mem == nil {
		return sink.Memory{}, false, nil
	}
	return *u.mem, true, nil
}

// Begin begins a transaction.
func (u *logUnit) Begin(ctx context.Context, epoch uint64) (sink.Tx, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	st, err := u.begin(epoch)
	if err != nil {
		return nil, err
	}
	return &logTx{staged: st, unit: u}, nil
}

type logTx struct {
	*staged
	unit *logUnit
}

// Write writes a data file, which nothing names yet.
func (t *logTx) Write(ctx context.Context, p sink.Part, rows sink.Rows) error {
	if t.gen != t.c.gen {
		return fmt.Errorf("%w: the transaction is over", sink.ErrMisuse)
	}
	list, err := t.read(p, rows)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	return t.c.ask("data", func(*account) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.rows = append(t.rows, list...)
		return nil
	})
}

// Commit appends the epoch to the log.
func (t *logTx) Commit(ctx context.Context, m sink.Memory) error {
	u := t.unit
	if err := errors.Join(t.live(m), ctx.Err()); err != nil {
		return err
	}
	if u.mem != nil && m.Epoch <= u.mem.Epoch {
		return &sink.EpochError{Unit: u.name, Epoch: m.Epoch, Have: u.mem.Epoch}
	}
	err := u.put("append", logEntry{term: u.fence.Term, run: u.fence.Run, mem: &m, rows: t.rows})
	if errors.Is(err, errTaken) {
		e, ok, readErr := u.next()
		switch {
		case readErr != nil:
			return readErr
		case u.s.flaw == "what is taken is taken for done", ok && e.run == u.fence.Run && e.mem != nil && *e.mem == m:
			err = nil
		default:
			return &sink.NotOwnerError{Unit: u.name, Term: u.fence.Term, Newer: e.term}
		}
	}
	if err == nil {
		u.mem = &m
		t.end()
	}
	return err
}

// Abort leaves the data files unnamed.
func (t *logTx) Abort(context.Context) error {
	t.end()
	return nil
}
