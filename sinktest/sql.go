package sinktest

import (
	"context"
	"errors"
	"fmt"

	"github.com/statemill/statemill/sink"
)

type sqlUnit struct{ client }

// Fence is UPDATE … SET fence = T WHERE fence <= T; the memory is not touched.
func (u *sqlUnit) Fence(ctx context.Context, f sink.Fence) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := u.take(f); err != nil {
		return err
	}
	u.fence, u.open = &f, false
	u.gen++
	err := u.ask("fence", func(a *account) error {
		switch {
		case a.fence > f.Term && u.s.flaw != "lower terms may fence":
			return &sink.NotOwnerError{Unit: u.name, Term: f.Term, Newer: a.fence}
		case u.s.flaw == "fence does nothing":
			return nil
		case u.s.flaw == "fence takes the writer's term" && a.mem != nil: // CE10
			m := *a.mem
			m.Term = f.Term
			a.mem = &m
		case u.s.flaw == "fence forgets the memory":
			a.mem = nil
		}
		a.fence = f.Term
		return nil
	})
	if err != nil {
		u.fence = nil
	}
	return err
}

// Memory reads the row.
func (u *sqlUnit) Memory(ctx context.Context) (m sink.Memory, ok bool, err error) {
	if err := errors.Join(u.ready("memory"), ctx.Err()); err != nil {
		return m, false, err
	}
	err = u.ask("memory", func(a *account) error {
		if ok = a.mem != nil; ok {
			m = *a.mem
		}
		if u.s.flaw == "digest not kept" {
			m.Digest = sink.Sum{}
		}
		return nil
	})
	return m, ok && err == nil, err
}

// Begin begins a transaction.
func (u *sqlUnit) Begin(ctx context.Context, epoch uint64) (sink.Tx, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	st, err := u.begin(epoch)
	if err != nil {
		return nil, err
	}
	return &sqlTx{staged: st}, nil
}

type sqlTx struct{ *staged }

// Write inserts the rows of a part, not yet visible.
func (t *sqlTx) Write(ctx context.Context, p sink.Part, rows sink.Rows) error {
	if t.gen != t.c.gen {
		return fmt.Errorf("%w: the transaction is over", sink.ErrMisuse)
	}
	list, err := t.read(p, rows)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	return t.c.ask("insert", func(*account) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.rows = append(t.rows, list...)
		return nil
	})
}

// Commit is the conditional update of the row, and the end of the transaction.
func (t *sqlTx) Commit(ctx context.Context, m sink.Memory) error {
	if err := errors.Join(t.live(m), ctx.Err()); err != nil {
		return err
	}
	flaw := t.c.s.flaw
	if flaw == "an empty epoch leaves the memory" && len(t.rows) == 0 {
		t.end()
		return nil
	}
	if flaw == "memory apart from the data" {
		if err := t.c.ask("memory alone", func(a *account) error { a.mem = &m; return nil }); err != nil {
			return err
		}
	}
	err := t.c.ask("commit", func(a *account) error {
		switch {
		case a.fence > t.c.fence.Term && flaw != "commit does not look at the fence":
			return &sink.NotOwnerError{Unit: t.c.name, Term: t.c.fence.Term, Newer: a.fence}
		case flaw == "memory apart from the data", flaw == "epochs not compared":
		case a.mem != nil && *a.mem == m && flaw != "a repeated commit fails":
			return nil // an earlier try, whose answer was lost
		case a.mem != nil && a.mem.Epoch >= m.Epoch:
			return &sink.EpochError{Unit: t.c.name, Epoch: m.Epoch, Have: a.mem.Epoch}
		}
		t.c.s.rows = append(t.c.s.rows, t.rows...)
		a.mem = &m
		return nil
	})
	if err == nil {
		t.end()
	}
	return err
}

// Abort rolls back.
func (t *sqlTx) Abort(context.Context) error {
	t.end()
	return nil
}
