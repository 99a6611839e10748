package sinktest

import (
	"context"
	"errors"
	"sync"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

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
