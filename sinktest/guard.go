package sinktest

import (
	"context"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// guarded is a unit whose calls pass the faults of its run, so that it can be
// frozen and ended between them though its own requests do not pass there.
type guarded struct {
	sink.Unit
	in vfs.Injector
}

func guard(u sink.Unit, in vfs.Injector) sink.Unit { return &guarded{u, in} }

// do makes a call unless the run dies before it. The answer of a call within one
// process is never lost.
func (g *guarded) do(what string, do func() error) error {
	f := g.in.Before(vfs.Call{Kind: vfs.KindOther, Path: "call/" + what})
	if f.Err != nil && !f.After {
		return f.Err
	}
	return do()
}

func (g *guarded) Fence(ctx context.Context, f sink.Fence) error {
	return g.do("fence", func() error { return g.Unit.Fence(ctx, f) })
}

func (g *guarded) Memory(ctx context.Context) (m sink.Memory, ok bool, err error) {
	err = g.do("memory", func() error { m, ok, err = g.Unit.Memory(ctx); return err })
	return m, ok, err
}

func (g *guarded) Begin(ctx context.Context, epoch uint64) (sink.Tx, error) {
	tx, err := g.Unit.Begin(ctx, epoch)
	if err != nil {
		return nil, err
	}
	return guardedTx{tx, g}, nil
}

type guardedTx struct {
	sink.Tx
	g *guarded
}

func (t guardedTx) Write(ctx context.Context, p sink.Part, rows sink.Rows) error {
	return t.g.do("write", func() error { return t.Tx.Write(ctx, p, rows) })
}

func (t guardedTx) Commit(ctx context.Context, m sink.Memory) error {
	return t.g.do("commit", func() error { return t.Tx.Commit(ctx, m) })
}
