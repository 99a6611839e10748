package sinktest

import (
	"context"
	"errors"
	"fmt"
	"sync"

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

// An answer to a commit that is lost at any request: the same call again, or
// what the contract says about the errors, gives the epoch exactly once.
func lostAnswer(k *kit) {
	for at := 1; ; at++ {
		c := k.open(k.T)
		var faults vfs.Faults
		u := k.start(c, &faults, "r", 1)
		_, _, err := u.Memory(k.ctx())
		require.NoError(k, err)
		w := k.writer(c, u, "r", 1, "x")
		out, err := w.Prepare(k.ctx(), false)
		require.NoError(k, err)
		faults.Fail(vfs.Rule{K: at, After: true})
		m := memory(1, 1, out)
		err = w.Commit(k.ctx(), m)
		for try := 0; err != nil && !named(err) && try < 5; try++ {
			err = w.Commit(k.ctx(), m)
		}
		if errors.Is(err, sink.ErrUnknown) || errors.Is(err, sink.ErrFenced) {
			require.NoError(k, u.Fence(k.ctx(), fence("r", 1)))
			var have bool
			_, have, err = u.Memory(k.ctx())
			require.NoError(k, err)
			if !have {
				m = k.commit(c, u, "r", 1, 1, "x")
			}
		}
		require.NoError(k, err, "answer %d was lost", at)
		hits := faults.Hits()
		faults.Clear()
		k.has(u, m)
		m = k.commit(c, u, "r", 2, 1, "x")
		k.sees(c, "r", map[uint64]string{1: "x", 2: "x"})
		k.has(k.start(c, nil, "r", 2), m)
		if hits == 0 {
			return
		}
	}
}

func sideBySide(k *kit) {
	c := k.open(k.T)
	u := k.start(c, nil, "r", 1)
	w, err := sink.NewWriter(u, 1, c.bind(u, "r", 1, "x"), func(ctx context.Context, n int, task func(context.Context, int) error) error {
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { errs[i] = task(ctx, i) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	require.NoError(k, err)
	out, err := w.Prepare(k.ctx(), false)
	require.NoError(k, err)
	inTurn, err := k.writer(c, u, "r", 1, "x").Prepare(k.ctx(), true)
	require.NoError(k, err)
	require.Equal(k, inTurn, out, "the sum does not depend on who was first")
	require.NoError(k, w.Commit(k.ctx(), memory(1, 1, out)))
	k.sees(c, "r", map[uint64]string{1: "x"})
}

func failedWrite(k *kit) {
	c := k.open(k.T)
	u := k.start(c, nil, "r", 1)
	m := k.commit(c, u, "r", 1, 1, "x")
	stop := errors.New("stop")
	s := sink.Sink[string]{Unit: u, Target: c.Target, Encode: func(dst []byte, text string) ([]byte, error) {
		if text == "bad" {
			return nil, stop
		}
		if c.Encode != nil {
			return c.Encode(dst, text)
		}
		return append(dst, text...), nil
	}}
	bad := sink.Bind(s, "a", 3, func(_ context.Context, part int, yield func(string) error) error {
		for _, text := range append(texts("r", 2, "a", part, "x"), "bad") {
			if err := yield(text); err != nil {
				return err
			}
		}
		return nil
	})
	w, err := sink.NewWriter(u, 2, []sink.Output{bad}, nil)
	require.NoError(k, err)
	_, err = w.Prepare(k.ctx(), false)
	require.ErrorIs(k, err, stop, "the error of rows comes back")
	k.sees(c, "r", map[uint64]string{1: "x"})
	k.has(u, m)
	k.commit(c, u, "r", 2, 1, "y")
	k.sees(c, "r", map[uint64]string{1: "x", 2: "y"})
}

// CE14: a transaction that the system gives up for time is ErrFenced; the same
// run fences again, and writes again.
func expired(k *kit) {
	c := k.open(k.T)
	if c.Expire == nil {
		k.skip("transactions do not expire")
	}
	u := k.start(c, nil, "r", 1)
	m := k.commit(c, u, "r", 1, 1, "x")
	w := k.writer(c, u, "r", 2, "x")
	out, err := w.Prepare(k.ctx(), false)
	require.NoError(k, err)
	c.Expire()
	require.ErrorIs(k, w.Commit(k.ctx(), memory(2, 1, out)), sink.ErrFenced)
	require.NoError(k, u.Fence(k.ctx(), fence("r", 1)))
	k.has(u, m)
	out, err = w.Prepare(k.ctx(), false)
	require.NoError(k, err)
	require.NoError(k, w.Commit(k.ctx(), memory(2, 1, out)))
	k.sees(c, "r", map[uint64]string{1: "x", 2: "x"})
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
