package sinktest

import (
	"errors"

	"github.com/statemill/statemill/sink"
	"github.com/stretchr/testify/require"
)

// P7, CE1, CE11: an older run that wakes up at any point commits nothing.
func fenceShutsOut(k *kit) {
	for _, when := range []string{"fenced", "begun", "written"} {
		c := k.open(k.T)
		old := k.start(c, nil, "r", 1)
		k.commit(c, old, "r", 1, 1, "x")
		var tx sink.Tx
		var err error
		w := k.writer(c, old, "r", 2, "old")
		var out sink.Sum
		switch when {
		case "begun":
			tx, err = old.Begin(k.ctx(), 2)
		case "written":
			out, err = w.Prepare(k.ctx(), false)
		}
		require.NoError(k, err)
		young := k.start(c, nil, "r", 2)
		m, ok, err := young.Memory(k.ctx())
		require.NoError(k, err)
		require.True(k, ok)
		switch when {
		case "fenced":
			out, err = w.Prepare(k.ctx(), false)
			if err == nil {
				err = w.Commit(k.ctx(), memory(2, 1, out))
			}
		case "begun":
			err = tx.Commit(k.ctx(), memory(2, 1, out))
		case "written":
			err = w.Commit(k.ctx(), memory(2, 1, out))
		}
		require.Error(k, err, when)
		require.True(k, errors.Is(err, sink.ErrNotOwner) || errors.Is(err, sink.ErrFenced), "%s: %v", when, err)
		if c.KnowsTerms {
			require.ErrorIs(k, err, sink.ErrNotOwner, when)
		}
		k.sees(c, "r", map[uint64]string{1: "x"})
		k.has(young, m)
		k.commit(c, young, "r", 2, 2, "new")
		k.sees(c, "r", map[uint64]string{1: "x", 2: "new"})
	}
}

// CE2: a late fence of an older run.
func lowerTerm(k *kit) {
	c := k.open(k.T)
	m := k.commit(c, k.start(c, nil, "r", 1), "r", 1, 1, "x")
	old := c.Open(nil)
	k.T.Cleanup(func() { _ = old.Close() })
	young := k.start(c, nil, "r", 3)
	k.has(young, m)
	err := old.Fence(k.ctx(), fence("r", 2))
	if !c.KnowsTerms {
		// The last one wins, so who was first must notice.
		require.NoError(k, err)
		require.ErrorIs(k, tryCommit(k, c, young, 2), sink.ErrFenced)
		k.sees(c, "r", map[uint64]string{1: "x"})
		require.NoError(k, young.Fence(k.ctx(), fence("r", 3)))
		k.has(young, m)
	} else {
		require.ErrorIs(k, err, sink.ErrNotOwner)
		_, _, err = old.Memory(k.ctx())
		require.Error(k, err, "a run that was refused may ask nothing")
	}
	m = k.commit(c, young, "r", 2, 3, "y")
	k.has(young, m)
	k.sees(c, "r", map[uint64]string{1: "x", 2: "y"})
}

func fenceAgain(k *kit) {
	c := k.open(k.T)
	u := k.start(c, nil, "r", 1)
	m := k.commit(c, u, "r", 1, 1, "x")
	for range 2 {
		require.NoError(k, u.Fence(k.ctx(), fence("r", 1)))
		k.has(u, m)
	}
	w := k.writer(c, u, "r", 2, "old")
	out, err := w.Prepare(k.ctx(), false)
	require.NoError(k, err)
	require.NoError(k, u.Fence(k.ctx(), fence("r", 1)))
	k.has(u, m)
	require.Error(k, w.Commit(k.ctx(), memory(2, 1, out)), "a transaction from before the fence is dead")
	m2 := k.commit(c, u, "r", 2, 1, "x")
	require.NoError(k, w.Abort(k.ctx()), "and can only be aborted")
	k.has(u, m2)
	k.commit(c, u, "r", 3, 1, "x")
	k.sees(c, "r", map[uint64]string{1: "x", 2: "x", 3: "x"})
}

// A fork or a new root has another id: it starts anew, and disturbs nobody.
func rootsApart(k *kit) {
	c := k.open(k.T)
	a := k.start(c, nil, "r", 1)
	m := k.commit(c, a, "r", 1, 1, "x")
	b := k.start(c, nil, "fork", 7)
	_, ok, err := b.Memory(k.ctx())
	require.NoError(k, err)
	require.False(k, ok, "another root starts anew")
	k.commit(c, b, "fork", 1, 7, "y")
	k.has(a, m)
	m = k.commit(c, a, "r", 2, 1, "x")
	k.has(k.start(c, nil, "r", 2), m)
	k.sees(c, "r", map[uint64]string{1: "x", 2: "x"})
	k.sees(c, "fork", map[uint64]string{1: "y"})
}
