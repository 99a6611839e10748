package sinktest

import (
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// Two runs of one process that were given one object: the second is refused, before the
// system hears of it, and the first goes on, in the midst of a transaction too.
func inUse(k *kit) {
	c := k.open(k.T)
	var faults vfs.Faults
	u := k.start(c, &faults, "r", 1)
	k.commit(c, u, "r", 1, 1, "x")
	w := k.writer(c, u, "r", 2, "x")
	out, err := w.Prepare(k.ctx(), false)
	require.NoError(k, err)
	calls := faults.Calls()
	for _, f := range []sink.Fence{fence("fork", 7), {Root: "r", Run: "second", Term: 1}, {Root: "r", Run: "second", Term: 2}} {
		err := u.Fence(k.ctx(), f)
		require.ErrorIs(k, err, sink.ErrMisuse, "a second run")
		var e *sink.InUseError
		require.ErrorAs(k, err, &e)
		require.True(k, e.Permanent())
		first := fence("r", 1)
		require.Equal(k, sink.InUseError{Unit: u.Name(), Root: f.Root, Run: f.Run, Term: f.Term, ByRoot: "r", ByRun: first.Run, ByTerm: 1}, *e)
	}
	require.Equal(k, calls, faults.Calls(), "nothing was touched")
	m := memory(2, 1, out)
	require.NoError(k, w.Commit(k.ctx(), m), "the first one goes on")
	k.has(u, m)
	again := fence("r", 1)
	again.Term = 2 // a run that begins anew in its place takes another term
	require.NoError(k, u.Fence(k.ctx(), again))
	k.has(u, m)
	m = k.commit(c, u, "r", 4, 2, "x")

	// One after the other they may have it.
	require.NoError(k, u.Close())
	require.NoError(k, u.Fence(k.ctx(), fence("fork", 7)))
	_, ok, err := u.Memory(k.ctx())
	require.NoError(k, err)
	require.False(k, ok, "another root starts anew")
	k.commit(c, u, "fork", 1, 7, "y")
	require.NoError(k, u.Close())
	require.NoError(k, u.Fence(k.ctx(), fence("r", 3)))
	k.has(u, m)
	k.sees(c, "r", map[uint64]string{1: "x", 2: "x", 4: "x"})
	k.sees(c, "fork", map[uint64]string{1: "y"})
}

// A run that failed has closed its unit and another one opens the same object: what the
// first had begun stays dead, and is not in the way.
func closeAndFence(k *kit) {
	for _, when := range []string{"begun", "written"} {
		c := k.open(k.T)
		u := k.start(c, nil, "r", 1)
		m := k.commit(c, u, "r", 1, 1, "x")
		var commits []func() error
		var aborts []func() error
		for term := uint64(2); term < 5; term++ {
			switch when {
			case "begun":
				tx, err := u.Begin(k.ctx(), 2)
				require.NoError(k, err, "term %d", term-1)
				commits = append(commits, func() error { return tx.Commit(k.ctx(), memory(2, term-1, sink.Sum{})) })
				aborts = append(aborts, func() error { return tx.Abort(k.ctx()) })
			case "written":
				w := k.writer(c, u, "r", 2, "old")
				out, err := w.Prepare(k.ctx(), false)
				require.NoError(k, err, "term %d", term-1)
				commits = append(commits, func() error { return w.Commit(k.ctx(), memory(2, term-1, out)) })
				aborts = append(aborts, func() error { return w.Abort(k.ctx()) })
			}
			require.NoError(k, u.Close())
			for _, commit := range commits {
				require.Error(k, commit(), "a transaction ends with Close")
			}
			require.NoError(k, u.Fence(k.ctx(), fence("r", term)))
			k.has(u, m)
			for _, commit := range commits {
				require.Error(k, commit(), "a transaction from before Close is dead")
			}
			k.sees(c, "r", map[uint64]string{1: "x"})
			k.has(u, m)
		}
		m = k.commit(c, u, "r", 2, 4, "new")
		for _, abort := range aborts {
			require.NoError(k, abort(), "and can only be aborted")
		}
		k.has(u, m)
		k.commit(c, u, "r", 4, 4, "new")
		k.sees(c, "r", map[uint64]string{1: "x", 2: "new", 4: "new"})
	}
}
