package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// board is a system that exactly-once sinks write to. It survives processes.
type board struct {
	mu     sync.Mutex
	rows   map[string][]string // by unit
	mem    map[string]sink.Memory
	fence  map[string]sink.Fence
	noTerm bool // the last fence wins, as with Kafka; else it knows terms
	open   int  // transactions that have begun and are neither committed nor aborted
}

func (b *board) key(unit, root string) string { return unit + " of " + root }

// clone is what a crash leaves: all of it.
func (b *board) clone() *board {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &board{rows: maps.Clone(b.rows), mem: maps.Clone(b.mem), fence: maps.Clone(b.fence), noTerm: b.noTerm}
}

// boardUnit is one run's unit of a board.
type boardUnit struct {
	b    *board
	name string
	in   vfs.Injector
	f    sink.Fence
}

func (b *board) unit(name string, in vfs.Injector) *boardUnit {
	return &boardUnit{b: b, name: name, in: in}
}

// do makes a call that can fail or freeze like a call of the store.
func (u *boardUnit) do(what string, do func() error) error {
	call := func() error {
		u.b.mu.Lock()
		defer u.b.mu.Unlock()
		return do()
	}
	if u.in == nil {
		return call()
	}
	return vfs.Inject(u.in, vfs.Call{Kind: vfs.KindOther, Path: "sink/" + u.name + "/" + what}, call)
}

func (u *boardUnit) Name() string { return u.name }

func (u *boardUnit) Fence(_ context.Context, f sink.Fence) error {
	return u.do("fence", func() error {
		key := u.b.key(u.name, f.Root)
		if old := u.b.fence[key]; !u.b.noTerm && old.Term > f.Term {
			return &sink.NotOwnerError{Unit: u.name, Term: f.Term, Newer: old.Term}
		}
		if u.b.fence == nil {
			u.b.fence, u.b.mem, u.b.rows = map[string]sink.Fence{}, map[string]sink.Memory{}, map[string][]string{}
		}
		f.Notice = nil
		u.b.fence[key] = f
		u.f = f
		return nil
	})
}

func (u *boardUnit) fenced() error {
	switch now := u.b.fence[u.b.key(u.name, u.f.Root)]; {
	case now.Run == u.f.Run && now.Term == u.f.Term:
		return nil
	case now.Term > u.f.Term && !u.b.noTerm:
		return &sink.NotOwnerError{Unit: u.name, Term: u.f.Term, Newer: now.Term}
	}
	return fmt.Errorf("board: %w", sink.ErrFenced)
}

func (u *boardUnit) Memory(context.Context) (m sink.Memory, ok bool, err error) {
	err = u.do("memory", func() error {
		m, ok = u.b.mem[u.b.key(u.name, u.f.Root)]
		return nil
	})
	return m, ok, err
}

func (u *boardUnit) Begin(_ context.Context, epoch uint64) (sink.Tx, error) {
	t := &boardTx{u: u}
	return t, u.do("begin", func() error {
		err := u.fenced()
		if err == nil {
			u.b.open++
		}
		return err
	})
}

func (u *boardUnit) Close() error { return nil }

type boardTx struct {
	u    *boardUnit
	rows []string
	over bool
}

// end closes the transaction. The board is locked.
func (t *boardTx) end() {
	if !t.over {
		t.over = true
		t.u.b.open--
	}
}

func (t *boardTx) Write(_ context.Context, _ sink.Part, rows sink.Rows) error {
	return rows(func(row []byte) error {
		t.rows = append(t.rows, string(row))
		return nil
	})
}

func (t *boardTx) Commit(_ context.Context, m sink.Memory) error {
	return t.u.do("commit", func() error {
		b, key := t.u.b, t.u.b.key(t.u.name, t.u.f.Root)
		have, ok := b.mem[key]
		if ok && have == m {
			return nil // repeated
		}
		if err := t.u.fenced(); err != nil {
			return err
		}
		if ok && have.Epoch >= m.Epoch {
			return &sink.EpochError{Unit: t.u.name, Epoch: m.Epoch, Have: have.Epoch}
		}
		t.end()
		b.mem[key] = m
		b.rows[t.u.name] = append(b.rows[t.u.name][:len(b.rows[t.u.name]):len(b.rows[t.u.name])], t.rows...)
		return nil
	})
}

func (t *boardTx) Abort(context.Context) error {
	t.u.b.mu.Lock()
	defer t.u.b.mu.Unlock()
	t.end()
	return nil
}
