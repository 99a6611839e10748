package sinktest

import (
	"context"
	"errors"
	"fmt"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

func freshRoot(k *kit) {
	c := k.open(k.T)
	u := k.start(c, nil, "r", 1)
	require.Equal(k, c.Open(nil).Name(), u.Name(), "all clients have one name")
	require.NotEmpty(k, u.Name())
	_, ok, err := u.Memory(k.ctx())
	require.NoError(k, err)
	require.False(k, ok, "nothing was written")
	k.sees(c, "r", nil)
	m := k.commit(c, u, "r", 1, 1, "x")
	k.has(u, m)
	k.sees(c, "r", map[uint64]string{1: "x"})
}

// CE8, CE10: the memory has the term of who wrote the data, whoever fences later.
func memoryIsKept(k *kit) {
	c := k.open(k.T)
	u := k.start(c, nil, "r", 1)
	k.commit(c, u, "r", 1, 1, "x")
	m := k.commit(c, u, "r", 2, 1, "x")
	for term := uint64(2); term < 5; term++ {
		require.NoError(k, u.Close())
		if c.Crash != nil {
			c.Crash()
		}
		u = k.start(c, nil, "r", term)
		k.has(u, m)
		k.has(u, m)
	}
	k.sees(c, "r", map[uint64]string{1: "x", 2: "x"})
	m = k.commit(c, u, "r", 3, 4, "x")
	k.has(u, m)
	k.has(k.start(c, nil, "r", 5), m)
}

func rowsInOrder(k *kit) {
	c := k.open(k.T)
	u := k.start(c, nil, "r", 1)
	want := map[uint64]string{}
	for epoch := uint64(1); epoch <= 7; epoch++ {
		want[epoch] = fmt.Sprint("v", epoch)
		k.commit(c, u, "r", epoch, 1, want[epoch])
		k.sees(c, "r", want)
	}
}

func nothingBeforeCommit(k *kit) {
	c := k.open(k.T)
	u := k.start(c, nil, "r", 1)
	m := k.commit(c, u, "r", 1, 1, "x")
	w := k.writer(c, u, "r", 2, "x")
	_, err := w.Prepare(k.ctx(), false)
	require.NoError(k, err)
	k.sees(c, "r", map[uint64]string{1: "x"})
	// The process dies; the next run finds what was before.
	if c.Crash != nil {
		c.Crash()
	}
	next := k.start(c, nil, "r", 2)
	k.has(next, m)
	k.sees(c, "r", map[uint64]string{1: "x"})
}

func abortLeavesNothing(k *kit) {
	c := k.open(k.T)
	u := k.start(c, nil, "r", 1)
	m := k.commit(c, u, "r", 1, 1, "x")
	w := k.writer(c, u, "r", 2, "x")
	for range 2 {
		_, err := w.Prepare(k.ctx(), false)
		require.NoError(k, err)
		require.NoError(k, w.Abort(k.ctx()))
		require.NoError(k, w.Abort(k.ctx()), "twice")
		k.has(u, m)
		k.sees(c, "r", map[uint64]string{1: "x"})
	}
	// An attempt with other output may follow.
	m = k.commit(c, u, "r", 2, 1, "y")
	k.has(u, m)
	k.sees(c, "r", map[uint64]string{1: "x", 2: "y"})
}

// Abort may be called again, and after Commit; it does nothing then, neither to what was
// committed nor to the next transaction.
func abortTwice(k *kit) {
	c := k.open(k.T)
	u := k.start(c, nil, "r", 1)
	_, _, err := u.Memory(k.ctx())
	require.NoError(k, err)
	begin := func(epoch uint64) sink.Tx {
		tx, err := u.Begin(k.ctx(), epoch)
		require.NoError(k, err)
		return tx
	}
	first := begin(1)
	require.NoError(k, first.Abort(k.ctx()))
	require.NoError(k, first.Abort(k.ctx()), "twice")
	second := begin(1)
	require.NoError(k, first.Abort(k.ctx()), "while another one is open")
	m := memory(1, 1, sink.Sum{})
	require.NoError(k, second.Commit(k.ctx(), m))
	require.NoError(k, second.Abort(k.ctx()), "after Commit")
	k.has(u, m)
	third := begin(2)
	require.NoError(k, second.Abort(k.ctx()), "after Commit, while another one is open")
	m = memory(2, 1, sink.Sum{})
	require.NoError(k, third.Commit(k.ctx(), m))
	require.NoError(k, third.Abort(k.ctx()))
	require.NoError(k, third.Abort(k.ctx()), "twice after Commit")
	k.has(u, m)
	k.commit(c, u, "r", 4, 1, "x")
	k.sees(c, "r", map[uint64]string{4: "x"})
}

func epochsGoForward(k *kit) {
	c := k.open(k.T)
	u := k.start(c, nil, "r", 1)
	k.commit(c, u, "r", 1, 1, "x")
	m := k.commit(c, u, "r", 4, 1, "x") // epochs of a tool write no sink
	for term := uint64(1); term <= 2; term++ {
		if term == 2 {
			u = k.start(c, nil, "r", 2)
		}
		k.has(u, m)
		for _, epoch := range []uint64{4, 2, 1} {
			require.ErrorIs(k, tryCommit(k, c, u, epoch), sink.ErrEpoch, "epoch %d after 4", epoch)
			k.sees(c, "r", map[uint64]string{1: "x", 4: "x"})
		}
	}
	k.has(u, m)
	k.commit(c, u, "r", 5, 2, "x")
	k.sees(c, "r", map[uint64]string{1: "x", 4: "x", 5: "x"})
}

// tryCommit writes other output of an epoch and gives the first error.
func tryCommit(k *kit, c Case, u sink.Unit, epoch uint64) error {
	w := k.writer(c, u, "r", epoch, "other")
	out, err := w.Prepare(k.ctx(), false)
	if err == nil {
		err = w.Commit(k.ctx(), memory(epoch, 9, out))
	}
	return errors.Join(err, w.Abort(k.ctx()))
}

// CE20: every epoch moves the memory, with parts that are empty and without any.
func emptyEpoch(k *kit) {
	c := k.open(k.T)
	u := k.start(c, nil, "r", 1)
	for _, outputs := range [][]sink.Output{c.bind(u, "r", 3, "x"), nil} {
		for epoch := uint64(3); epoch < 5; epoch++ {
			m0, _, err := u.Memory(k.ctx())
			require.NoError(k, err)
			w, err := sink.NewWriter(u, m0.Epoch+3, outputs, nil)
			require.NoError(k, err)
			out, err := w.Prepare(k.ctx(), false)
			require.NoError(k, err)
			m := memory(m0.Epoch+3, 1, out)
			require.NoError(k, w.Commit(k.ctx(), m))
			k.has(u, m)
		}
	}
	m, _, err := u.Memory(k.ctx())
	require.NoError(k, err)
	k.has(k.start(c, nil, "r", 2), m)
	k.sees(c, "r", nil)
}

func notOpen(k *kit) {
	c := k.open(k.T)
	u := c.Open(nil)
	_, _, err := u.Memory(k.ctx())
	require.Error(k, err, "Memory before Fence")
	_, err = u.Begin(k.ctx(), 1)
	require.Error(k, err, "Begin before Fence")
	require.NoError(k, u.Fence(k.ctx(), fence("r", 1)))
	tx, err := u.Begin(k.ctx(), 1)
	require.NoError(k, err)
	_, err = u.Begin(k.ctx(), 1)
	require.Error(k, err, "two transactions")
	require.Error(k, tx.Commit(k.ctx(), memory(2, 1, sink.Sum{})), "another epoch than that of Begin")
	require.NoError(k, tx.Abort(k.ctx()))
	require.Error(k, tx.Commit(k.ctx(), memory(1, 1, sink.Sum{})), "Commit after Abort")
	require.NoError(k, u.Close())
	require.NoError(k, u.Close(), "twice")
	_, _, err = u.Memory(k.ctx())
	require.Error(k, err, "Memory after Close")
	_, err = u.Begin(k.ctx(), 1)
	require.Error(k, err, "Begin after Close")
	require.NoError(k, c.Open(nil).Close(), "Close without Fence")
}

func cancelled(k *kit) {
	c := k.open(k.T)
	u := k.start(c, nil, "r", 1)
	m := k.commit(c, u, "r", 1, 1, "x")
	dead, cancel := context.WithCancel(k.ctx())
	cancel()
	w := k.writer(c, u, "r", 2, "x")
	_, err := w.Prepare(dead, false)
	require.ErrorIs(k, err, context.Canceled)
	out, err := w.Prepare(k.ctx(), false)
	require.NoError(k, err, "a cancelled call changes nothing")
	require.ErrorIs(k, w.Commit(dead, memory(2, 1, out)), context.Canceled)
	k.sees(c, "r", map[uint64]string{1: "x"})
	_, _, err = u.Memory(dead)
	require.ErrorIs(k, err, context.Canceled)
	require.ErrorIs(k, c.Open(nil).Fence(dead, fence("r", 2)), context.Canceled)
	require.NoError(k, w.Abort(k.ctx()))
	k.has(u, m)
	k.commit(c, u, "r", 2, 1, "x")
	k.sees(c, "r", map[uint64]string{1: "x", 2: "x"})
}

// A dry run gives the sum of the real one, and the system hears nothing of it.
func dryRun(k *kit) {
	c := k.open(k.T)
	var faults vfs.Faults
	u := k.start(c, &faults, "r", 1)
	m := k.commit(c, u, "r", 1, 1, "x")
	w := k.writer(c, u, "r", 2, "x")
	calls := faults.Calls()
	dry, err := w.Prepare(k.ctx(), true)
	require.NoError(k, err)
	require.Equal(k, calls, faults.Calls())
	k.has(u, m)
	out, err := w.Prepare(k.ctx(), false)
	require.NoError(k, err)
	require.Equal(k, dry, out)
	again, err := w.Prepare(k.ctx(), true)
	require.NoError(k, err, "while a transaction is open")
	require.Equal(k, dry, again)
	require.NoError(k, w.Commit(k.ctx(), memory(2, 1, out)))
	k.sees(c, "r", map[uint64]string{1: "x", 2: "x"})
}
