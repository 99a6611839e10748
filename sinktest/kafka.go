package sinktest

import (
	"context"
	"errors"
	"fmt"

	"github.com/statemill/statemill/sink"
)

// errSettling is what requests get while the last commit is not settled.
var errSettling = errors.New("concurrent transactions")

// settleCalls is how many requests find a commit not settled yet.
const settleCalls = 2

// settling reports, once, that a commit is not settled yet.
func (a *account) settling() bool {
	if a.markers == 0 {
		return false
	}
	if a.markers--; a.markers == 0 {
		a.older = nil
	}
	return true
}

type kafkaUnit struct {
	client
	session int
	mem     *sink.Memory // as read after the fence, then as committed
	read    bool
}

// Fence is InitProducerID: it aborts what is open, and the last one wins.
func (u *kafkaUnit) Fence(ctx context.Context, f sink.Fence) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := u.take(f); err != nil {
		return err
	}
	u.fence, u.open, u.read, u.mem = &f, false, false, nil
	u.gen++
	for {
		err := u.ask("fence", func(a *account) error {
			switch {
			case u.s.flaw == "fence does nothing":
			case a.settling():
				return errSettling
			default:
				a.txn = nil
				a.session++
			}
			u.session = a.session
			return nil
		})
		if !errors.Is(err, errSettling) {
			if err != nil {
				u.fence = nil
			}
			return err
		}
	}
}

// Memory reads the memory when all commits are settled.
func (u *kafkaUnit) Memory(ctx context.Context) (sink.Memory, bool, error) {
	if err := errors.Join(u.ready("memory"), ctx.Err()); err != nil {
		return sink.Memory{}, false, err
	}
	for {
		err := u.ask("memory", func(a *account) error {
			switch {
			case u.session != a.session && u.s.flaw != "fence does nothing":
				// A fetch of offsets is not fenced.
			case u.s.flaw == "memory read before it is settled" && a.markers > 0:
				u.mem, u.read = a.older, true
				return nil
			}
			if a.settling() {
				return errSettling
			}
			u.mem, u.read = a.mem, true
			return nil
		})
		switch {
		case errors.Is(err, errSettling):
		case err != nil || u.mem == nil:
			return sink.Memory{}, false, err
		default:
			return *u.mem, true, nil
		}
	}
}

// Begin begins a transaction.
func (u *kafkaUnit) Begin(ctx context.Context, epoch uint64) (sink.Tx, error) {
	if err := errors.Join(u.ready("begin"), ctx.Err()); err != nil {
		return nil, err
	}
	if !u.read {
		if _, _, err := u.Memory(ctx); err != nil {
			return nil, err
		}
	}
	st, err := u.begin(epoch)
	if err != nil {
		return nil, err
	}
	return &kafkaTx{staged: st, unit: u}, nil
}

type kafkaTx struct {
	*staged
	unit  *kafkaUnit
	ended bool // EndTxn was sent
}

// request is one that opens the transaction if none is.
func (t *kafkaTx) request(what string, do func(a *account)) error {
	u := t.unit
	for {
		err := u.ask(what, func(a *account) error {
			switch {
			case u.session != a.session:
				return sink.ErrFenced
			case a.settling():
				return errSettling
			case a.txn == nil:
				a.txn = &txn{epoch: t.epoch}
			}
			do(a)
			return nil
		})
		if !errors.Is(err, errSettling) {
			return err
		}
	}
}

// Write produces the rows of a part.
func (t *kafkaTx) Write(ctx context.Context, p sink.Part, rows sink.Rows) error {
	if t.gen != t.c.gen {
		return fmt.Errorf("%w: the transaction is over", sink.ErrMisuse)
	}
	list, err := t.read(p, rows)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	if len(list) == 0 {
		return nil
	}
	return t.request("write", func(a *account) {
		if t.c.s.flaw == "rows seen before the commit" {
			t.c.s.rows = append(t.c.s.rows, list...)
			return
		}
		a.txn.rows = append(a.txn.rows, list...)
	})
}

// Commit sends the memory within the transaction and ends it.
func (t *kafkaTx) Commit(ctx context.Context, m sink.Memory) error {
	u := t.unit
	if err := errors.Join(t.live(m), ctx.Err()); err != nil {
		return err
	}
	if u.mem != nil && m.Epoch <= u.mem.Epoch && u.s.flaw != "epochs not compared" {
		return &sink.EpochError{Unit: u.name, Epoch: m.Epoch, Have: u.mem.Epoch}
	}
	if u.s.flaw == "an empty epoch leaves the memory" && !t.some() {
		u.mem = &m
		t.end()
		return nil
	}
	// Once EndTxn has been sent, only EndTxn may be sent again: a transaction that
	// it has ended would be begun anew by anything else.
	if !t.ended {
		if err := t.request("memory in txn", func(a *account) { a.txn.mem = &m }); err != nil {
			return err
		}
	}
	t.ended = u.s.flaw != "a repeated commit writes again"
	if err := u.ask("end", func(a *account) error { return t.endTxn(a) }); err != nil {
		return err
	}
	u.mem = &m
	t.end()
	return nil
}

func (t *kafkaTx) some() bool {
	t.c.s.mu.Lock()
	defer t.c.s.mu.Unlock()
	a := t.c.s.units[t.c.fence.Root+"/"+t.c.name]
	return a != nil && a.txn != nil && len(a.txn.rows) > 0
}

func (t *kafkaTx) endTxn(a *account) error {
	u := t.unit
	switch {
	case u.session != a.session:
		return sink.ErrFenced
	case a.txn == nil && a.ended == a.session:
		return nil // a repeated one
	case a.txn == nil:
		return sink.ErrFenced
	}
	if t.c.s.flaw == "a repeated commit writes again" {
		a.txn.rows = t.all(a.txn.rows)
	}
	t.c.s.rows = append(t.c.s.rows, a.txn.rows...)
	a.older, a.markers = a.mem, settleCalls
	a.mem = a.txn.mem
	a.ended, a.txn = a.session, nil
	return nil
}

// all keeps the rows, for the broken client that writes them again.
func (t *kafkaTx) all(rows []Row) []Row {
	if len(rows) > 0 {
		t.rows = rows
	}
	return t.rows
}

// Abort ends the transaction without its rows.
func (t *kafkaTx) Abort(context.Context) error {
	if t.gen != t.c.gen || t.over {
		return nil
	}
	err := t.unit.ask("abort", func(a *account) error {
		if t.unit.session == a.session {
			if a.txn != nil && t.c.s.flaw == "abort leaves rows" {
				t.c.s.rows = append(t.c.s.rows, a.txn.rows...)
			}
			a.txn = nil
		}
		return nil
	})
	t.end()
	return err
}
