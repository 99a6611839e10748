package sinktest

import (
	"context"
	"errors"
	"fmt"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// lastEpoch is where the runs of the suite end: there is an empty epoch among
// them.
const lastEpoch = 4

// bench is a root, and the systems that its runs write to.
type bench struct {
	*kit
	c    []Case
	root *ledger
}

func (k *kit) bench(units int) *bench {
	b := &bench{kit: k, root: newLedger("r")}
	for range units {
		b.c = append(b.c, k.open(k.T))
	}
	return b
}

func same(uint64, uint64) string { return "x" }

func (b *bench) engine(in *vfs.Faults) *engine {
	return &engine{c: b.c, root: b.root, in: in, epochs: lastEpoch, value: same}
}

// finish runs a new run to its end and checks that all is there once.
func (b *bench) finish(what string) {
	b.Helper()
	require.NoError(b, b.engine(nil).run(b.ctx()), what)
	b.all(what)
	require.NoError(b, b.engine(nil).run(b.ctx()), "%s: and nothing is left to do", what)
	b.all(what)
}

func (b *bench) all(what string) {
	b.Helper()
	want := map[uint64]string{}
	for n := uint64(1); n <= lastEpoch; n++ {
		want[n] = "x"
	}
	for _, c := range b.c {
		require.NoError(b, c.check(b.ctx(), b.root.id, want), what)
	}
}

// each plays with the faults of a run at its first call, its second, and so on,
// until the run has no more calls.
func each(k *kit, units int, play func(b *bench, at int, in *vfs.Faults) (reached bool)) {
	for at := 1; ; at++ {
		b := k.bench(units)
		in := &vfs.Faults{}
		if !play(b, at, in) {
			require.Greater(k, at, 10, "a run has more calls than that")
			return
		}
	}
}

func crashes(k *kit, units int) {
	for _, after := range []bool{false, true} {
		each(k, units, func(b *bench, at int, in *vfs.Faults) bool {
			in.Fail(vfs.Rule{K: at, After: after, Dead: true})
			err := b.engine(in).run(b.ctx())
			what := fmt.Sprintf("run 1 dies at call %d (made: %v)", at, after)
			if in.Hits() > 0 {
				require.ErrorIs(b, err, vfs.ErrInjected, what)
			}
			for _, c := range b.c {
				if c.Crash != nil {
					c.Crash()
				}
			}
			b.finish(what)
			return in.Hits() > 0
		})
	}
}

func crashEverywhere(k *kit) { crashes(k, 1) }

// Two units of one job: an epoch that only one has is redone and compared.
func twoUnitsCrash(k *kit) { crashes(k, 2) }

// mishaps plays a run in which one call, whichever, fails once, and that goes on.
func mishaps(k *kit, after bool) {
	each(k, 1, func(b *bench, at int, in *vfs.Faults) bool {
		in.Fail(vfs.Rule{K: at, After: after})
		what := fmt.Sprintf("call %d fails (made: %v)", at, after)
		require.NoError(b, b.engine(in).run(b.ctx()), what)
		b.finish(what)
		return in.Hits() > 0
	})
}

func lostEverywhere(k *kit) { mishaps(k, true) }

func failEverywhere(k *kit) { mishaps(k, false) }

// frozen is a run that stands before a call.
type frozen struct {
	*engine
	z    *vfs.Freezer
	done chan struct{}
	err  error
}

// freeze starts a run and waits until it stands before its call, or has ended.
func (b *bench) freeze(in *vfs.Faults, at int) (f *frozen, reached bool) {
	return b.freezeAt(b.engine(in), vfs.Rule{K: at})
}

func (b *bench) freezeAt(e *engine, r vfs.Rule) (f *frozen, reached bool) {
	f = &frozen{engine: e, z: e.in.Freeze(r), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.err = e.run(context.WithoutCancel(b.ctx()))
	}()
	b.T.Cleanup(func() { _ = f.thaw() })
	select {
	case <-f.z.Reached():
		return f, true
	case <-f.done:
		return f, false
	}
}

// thaw lets the run go on to its end.
func (f *frozen) thaw() error {
	f.z.Thaw()
	<-f.done
	return f.err
}

func stopped(err error) bool {
	return err == nil || errors.Is(err, errNotOwner) || errors.Is(err, sink.ErrNotOwner)
}

// An older run sleeps at any call while a newer one does everything.
func zombies(k *kit, units int) {
	each(k, units, func(b *bench, at int, in *vfs.Faults) bool {
		old, reached := b.freeze(in, at)
		what := fmt.Sprintf("run 1 sleeps before call %d", at)
		if reached && at > 1 { // before the first it has no term yet
			require.NoError(b, b.engine(nil).run(b.ctx()), what)
			b.all(what)
		}
		err := old.thaw()
		require.True(b, stopped(err), "%s, and ends with %v", what, err)
		b.all(what)
		b.finish(what)
		return reached
	})
}

func zombieEverywhere(k *kit) { zombies(k, 1) }

func twoUnitsZombie(k *kit) { zombies(k, 2) }

// CE1, CE2: an older run wakes up while a newer one stands at any call. The newer
// one reaches its end whatever the older one does. Runs with many calls are not
// tried at every pair of them, but evenly.
func interleaved(k *kit) {
	count := &vfs.Faults{}
	require.NoError(k, k.bench(1).engine(count).run(k.ctx()))
	step := max(1, count.Calls()/pairs)
	for first := 2; first <= count.Calls(); first += step { // before 2 it has no term yet
		for second := 1 + first%step; second <= count.Calls(); second += step {
			b := k.bench(1)
			old, reached := b.freeze(&vfs.Faults{}, first)
			require.True(b, reached)
			young, _ := b.freeze(&vfs.Faults{}, second)
			what := fmt.Sprintf("run 1 sleeps before call %d, run 2 before call %d", first, second)
			err := old.thaw()
			require.True(b, stopped(err), "%s: run 1 ends with %v", what, err)
			require.NoError(b, young.thaw(), "%s: run 2 is the newest", what)
			b.all(what)
			b.finish(what)
		}
	}
}

// pairs is how many places of either run are tried.
const pairs = 12

// A root that was set back finds a memory that is further: refused. A fork of it
// has another id and starts anew.
func rewound(k *kit) {
	b := k.bench(1)
	b.finish("first")
	whole := b.root
	b.root = whole.fork("r", lastEpoch-2)
	require.ErrorIs(b, b.engine(nil).run(b.ctx()), errRefused)
	b.root = whole
	b.all("after the refusal")
	b.root = whole.fork("fork", 0)
	require.NoError(b, b.engine(nil).run(b.ctx()))
	b.all("fork")
	b.root = whole
	b.all("the root that was forked")
}
