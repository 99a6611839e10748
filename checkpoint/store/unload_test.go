package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/vfs"
)

// A round of maintenance does all that is due whatever the timer says, so that a store
// that is closed after it leaves nothing to do; and a closed store gives nothing. // ST23
func TestMaintenanceBeforeClose(t *testing.T) {
	ctx := context.Background()
	files := vfs.NewObjects()
	open := func() *store.Provider[string, int64] {
		p, err := store.OpenProvider(ctx, store.ProviderConfig[string, int64]{
			Store: files, Policy: store.EveryVersions(5), RetryLimit: -1,
			Clock: clock.NewManual(time.Unix(1000, 0)), // it stands: no timer ends
		})
		require.NoError(t, err)
		return p
	}
	p := open()
	for n := range int64(26) {
		h, err := p.Store(ctx, p.Newest())
		require.NoError(t, err)
		require.NoError(t, h.Put("a", n, n))
		_, err = h.Commit(ctx)
		require.NoError(t, err)
		h.Close()
		if n%5 == 4 {
			require.NoError(t, p.Maintain(ctx))
		}
	}
	require.False(t, gone(t, files, delta(0, 16)))
	require.NoError(t, p.Maintain(ctx))
	require.True(t, gone(t, files, delta(0, 16)), "no version that is kept needs it")
	require.NoError(t, p.Close())
	require.True(t, gone(t, files, delta(0, 1)))
	require.True(t, gone(t, files, checkpoint.CommitName(1)))
	_, err := p.Store(ctx, 26)
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = p.ReadStore(ctx, 26)
	require.ErrorIs(t, err, store.ErrClosed)

	p = open()
	defer p.Close()
	r, err := p.ReadStore(ctx, 26)
	require.NoError(t, err)
	defer r.Close()
	e, ok, err := r.Get("a")
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 25, e.State)
}

// Partitions whose snapshots fail are alone in that: the others have theirs, commits go
// on, and what has no snapshot is read from its deltas. // ST24
func TestFailingPartitionsAreAlone(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 3, 1, withPolicy(store.EveryVersions(5)))
	full := errors.New("no space")
	w.upload = func(_ context.Context, part int, _ uint64) error {
		if part < 2 {
			return full
		}
		return nil
	}
	for w.newest() < 30 { // far above twice the policy's interval
		w.run(w.newest() + 5)
		w.round()
	}
	require.ErrorIs(t, w.maint.Stats().Err, full)
	require.Contains(t, w.names(2), "30.1.snapshot")
	for p := range 2 {
		for _, name := range w.names(p) {
			require.NotContains(t, name, ".snapshot")
		}
		require.Contains(t, w.names(p), "1.1.delta", "what it starts from is kept")
	}
	w.check(30)

	w.upload = nil
	w.clock.Advance(time.Hour)
	w.round()
	require.NoError(t, w.maint.Stats().Err)
	for p := range 3 {
		require.Contains(t, w.names(p), "30.1.snapshot")
	}
	w.check(30)
}

// A store that is opened again is another object on the same root: what the first one
// made is there, the root's id is the same, the term is the next, and the first object
// stays closed. // ST25
func TestReopenedStore(t *testing.T) {
	ctx := context.Background()
	files := vfs.NewObjects()
	open := func() *store.Provider[string, int64] {
		p, err := store.OpenProvider(ctx, store.ProviderConfig[string, int64]{Store: files, RetryLimit: -1})
		require.NoError(t, err)
		return p
	}
	next := func(p *store.Provider[string, int64], v int64) {
		h, err := p.Store(ctx, p.Newest())
		require.NoError(t, err)
		require.NoError(t, h.Put("a", v, v))
		_, err = h.Commit(ctx)
		require.NoError(t, err)
		h.Close()
	}
	id := func() (root string, term uint64) {
		r := checkpoint.OpenRoot(files)
		c, err := r.Newest(ctx)
		require.NoError(t, err)
		m, err := r.Metadata(ctx, c.Metadata)
		require.NoError(t, err)
		return m.Root, c.Term
	}
	first := open()
	next(first, 1)
	root, term := id()
	require.NoError(t, first.Close())
	second := open()
	defer second.Close()
	require.EqualValues(t, 1, second.Newest())
	next(second, 2)
	rootNow, termNow := id()
	require.Equal(t, root, rootNow)
	require.Equal(t, term+1, termNow)
	_, err := first.Store(ctx, 1)
	require.ErrorIs(t, err, store.ErrClosed)
	require.EqualValues(t, 1, first.Newest(), "it knows nothing of the other's versions")
	r, err := second.ReadStore(ctx, 2)
	require.NoError(t, err)
	defer r.Close()
	e, _, err := r.Get("a")
	require.NoError(t, err)
	require.EqualValues(t, 2, e.State)
}
