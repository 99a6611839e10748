package store_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/checkpoint/storetest"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/vfs"
)

// onDisk is a folder with locks; each process that opens it has a tag of its own.
type onDisk struct {
	mem  *vfs.Mem
	runs int
}

func (d *onDisk) Open(o storetest.Options) (storetest.Stores, error) {
	d.runs++
	fsys := vfs.FS(d.mem)
	if o.Faults != nil {
		fsys = vfs.WithFaults(fsys, o.Faults)
	}
	tag := fmt.Sprintf("run%d", d.runs)
	s, err := vfs.NewDir(fsys, "/ckpt", tag)
	if err != nil {
		return nil, err
	}
	return openProvider(s, tag, o)
}

func openProvider(s vfs.Store, tag string, o storetest.Options) (storetest.Stores, error) {
	p, err := store.OpenProvider(context.Background(), store.ProviderConfig[storetest.Key, int64]{
		Store: s, Tag: tag, Cache: o.Cache, Policy: store.EveryVersions(o.Every), RetryLimit: -1,
	})
	if err != nil {
		return nil, err // not a typed nil
	}
	return p, nil
}

func (d *onDisk) Crash(seed uint64, percent int) storetest.Medium {
	return &onDisk{mem: d.mem.CrashClone(rand.New(rand.NewPCG(seed, 1)), percent), runs: d.runs + 100}
}

func (d *onDisk) Files() vfs.Store {
	s, err := vfs.NewDir(d.mem, "/ckpt", "test")
	if err != nil {
		panic(err)
	}
	return s
}

// inObjects is an object store, which has no locks.
type inObjects struct{ o *vfs.Objects }

func (m *inObjects) Open(o storetest.Options) (storetest.Stores, error) {
	s := vfs.Store(m.o)
	if o.Faults != nil {
		s = vfs.WithStoreFaults(s, o.Faults)
	}
	return openProvider(s, "", o)
}

func (m *inObjects) Crash(uint64, int) storetest.Medium { return &inObjects{m.o.Clone()} }

func (m *inObjects) Files() vfs.Store { return m.o }

func TestProvider(t *testing.T) {
	t.Run("disk", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) storetest.Medium { return &onDisk{mem: vfs.NewMem()} })
	})
	t.Run("objects", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) storetest.Medium { return &inObjects{vfs.NewObjects()} })
	})
}

func provider[S any](t *testing.T, s vfs.Store) *store.Provider[string, S] {
	t.Helper()
	p, err := store.OpenProvider(context.Background(), store.ProviderConfig[string, S]{Store: s, RetryLimit: -1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// States that hold references are copied on the way in and on the way out, so
// nobody changes a version that was committed.
func TestProviderCopiesStates(t *testing.T) {
	ctx := context.Background()
	p := provider[[]int](t, vfs.NewObjects())
	h, err := p.Store(ctx, 0)
	require.NoError(t, err)
	s := []int{1, 2}
	require.NoError(t, h.Put("a", s, 1))
	s[0] = 9
	e, ok, err := h.Get("a")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []int{1, 2}, e.State)
	e.State[0] = 8
	for _, e := range h.Iterate() {
		require.Equal(t, []int{1, 2}, e.State)
		e.State[0] = 7
	}
	require.ErrorIs(t, h.Put("a", nil, 1), store.ErrNil) // ST19
	require.NoError(t, h.Put("empty", []int{}, 1))
	_, err = h.Commit(ctx)
	require.NoError(t, err)
	h.Close()
	r, err := p.ReadStore(ctx, 1)
	require.NoError(t, err)
	defer r.Close()
	e, _, err = r.Get("a")
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, e.State)
}

// Another run takes the root: the older one finds out at its next commit, and
// what it reads is still what was committed.
func TestProviderIsOverrun(t *testing.T) {
	ctx := context.Background()
	s := vfs.NewObjects()
	old := provider[int64](t, s)
	put := func(p *store.Provider[string, int64], v int64) error {
		h, err := p.Store(ctx, p.Newest())
		require.NoError(t, err)
		defer h.Close()
		require.NoError(t, h.Put("a", v, v))
		_, err = h.Commit(ctx)
		return err
	}
	require.NoError(t, put(old, 1))
	young := provider[int64](t, s)
	require.EqualValues(t, 1, young.Newest())
	require.NoError(t, put(young, 2))
	require.ErrorIs(t, put(old, 3), checkpoint.ErrNotOwner)
	require.ErrorIs(t, put(old, 3), checkpoint.ErrNotOwner)
	require.ErrorIs(t, old.Maintain(ctx), checkpoint.ErrNotOwner)
	r, err := old.ReadStore(ctx, 1)
	require.NoError(t, err)
	r.Close()
	require.NoError(t, put(young, 4))
	require.EqualValues(t, 3, young.Newest())

	// With locks the second one is refused instead.
	mem := vfs.NewMem()
	_ = provider[int64](t, dir(t, mem, 1))
	_, err = store.OpenProvider(ctx, store.ProviderConfig[string, int64]{Store: dir(t, mem, 2)})
	require.ErrorIs(t, err, checkpoint.ErrOwned)
	var owned *checkpoint.OwnedError
	require.ErrorAs(t, err, &owned)
	host, err := vfs.Disk().Hostname()
	require.NoError(t, err)
	require.Equal(t, host, owned.Host)
	require.Equal(t, vfs.Disk().PID(), owned.PID)
	require.NotEmpty(t, owned.Run)

	// They can be set.
	o := vfs.NewObjects()
	p, err := store.OpenProvider(ctx, store.ProviderConfig[string, int64]{Store: o, Run: "r", Host: "mill", PID: 7})
	require.NoError(t, err)
	require.NoError(t, p.Close())
	owner, err := checkpoint.OpenRoot(o).Owner(ctx)
	require.NoError(t, err)
	require.Equal(t, "mill", owner.Host)
	require.Equal(t, 7, owner.PID)
}

// A commit that failed after its delta was written leaves a planned epoch: the
// next one is made under the next term, with other content if need be.
func TestProviderGoesOnAfterFailures(t *testing.T) {
	ctx := context.Background()
	s := vfs.NewObjects()
	var f vfs.Faults
	p := provider[int64](t, vfs.WithStoreFaults(s, &f))
	for n := uint64(1); n <= 5; n++ {
		h, err := p.Store(ctx, n-1)
		require.NoError(t, err)
		require.NoError(t, h.Put("a", -1, 1))
		f.Fail(vfs.Rule{Kinds: vfs.KindPut, Path: "commits/*"})
		_, err = h.Commit(ctx)
		require.ErrorIs(t, err, vfs.ErrInjected)
		h.Close()
		f.Clear()
		h, err = p.Store(ctx, n-1)
		require.NoError(t, err)
		require.NoError(t, h.Put("a", int64(n), 1))
		_, err = h.Commit(ctx)
		require.NoError(t, err)
		h.Close()
	}
	require.NoError(t, p.Close())
	p = provider[int64](t, s)
	for n := uint64(1); n <= 5; n++ {
		r, err := p.ReadStore(ctx, n)
		require.NoError(t, err)
		e, _, err := r.Get("a")
		require.NoError(t, err)
		require.EqualValues(t, n, e.State)
		r.Close()
	}
}

// What fails for a moment is tried again, after a wait.
func TestProviderRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		var f vfs.Faults
		p, err := store.OpenProvider(ctx, store.ProviderConfig[string, int64]{Store: vfs.WithStoreFaults(vfs.NewObjects(), &f)})
		require.NoError(t, err)
		defer p.Close()
		for n := range uint64(2) {
			f.Fail(vfs.Rule{Kinds: vfs.KindPut, Path: "state/*/*/*", K: 1})
			h, err := p.Store(ctx, n)
			require.NoError(t, err)
			require.NoError(t, h.Put("a", 1, 1))
			_, err = h.Commit(ctx)
			require.NoError(t, err)
			h.Close()
		}
		require.Equal(t, 2, f.Hits())
		// But not for ever.
		f.Fail(vfs.Rule{Kinds: vfs.KindPut, Forever: true})
		h, err := p.Store(ctx, 2)
		require.NoError(t, err)
		defer h.Close()
		_, err = h.Commit(ctx)
		require.ErrorIs(t, err, vfs.ErrInjected)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		h, err = p.Store(ctx, 2)
		require.NoError(t, err)
		defer h.Close()
		_, err = h.Commit(ended)
		require.Error(t, err)
	})
}

// Many iterators in one handle make one delta, in the order of first writes.
func TestProviderMergesInnerVersions(t *testing.T) {
	ctx := context.Background()
	s := vfs.NewObjects()
	p := provider[int64](t, s)
	for n := uint64(0); n < 3; n++ {
		h, err := p.Store(ctx, n)
		require.NoError(t, err)
		for i := range int64(60) {
			require.NoError(t, h.Put(fmt.Sprint(i%10), i+int64(n), i))
			if i%3 == 0 {
				require.NoError(t, h.Remove(fmt.Sprint((i+5)%10)))
			}
			seq := h.Iterate()
			for range seq {
				break
			}
		}
		want := map[string]int64{}
		for k, e := range h.Iterate() {
			want[k] = e.State
		}
		_, err = h.Commit(ctx)
		require.NoError(t, err)
		h.Close()
		other, err := store.OpenProvider(ctx, store.ProviderConfig[string, int64]{Store: s.Clone()})
		require.NoError(t, err)
		r, err := other.ReadStore(ctx, n+1)
		require.NoError(t, err)
		got := map[string]int64{}
		for k, e := range r.Iterate() {
			got[k] = e.State
		}
		require.Equal(t, want, got)
		r.Close()
		require.NoError(t, other.Close())
	}
}

func TestProviderConfigs(t *testing.T) {
	ctx := context.Background()
	_, err := store.OpenProvider(ctx, store.ProviderConfig[string, int64]{})
	require.ErrorContains(t, err, "required")
	_, err = store.OpenProvider(ctx, store.ProviderConfig[chan int, int64]{Store: vfs.NewObjects()})
	require.Error(t, err)
	_, err = store.OpenProvider(ctx, store.ProviderConfig[string, chan int]{Store: vfs.NewObjects()})
	require.Error(t, err)
	s := vfs.NewObjects()
	p := provider[int64](t, s)
	h, err := p.Store(ctx, 0)
	require.NoError(t, err)
	require.NoError(t, h.Put("a", 1, 1))
	_, err = h.Commit(ctx)
	require.NoError(t, err)
	h.Close()
	require.NoError(t, p.Close())
	_, err = store.OpenProvider(ctx, store.ProviderConfig[string, string]{Store: s})
	require.ErrorIs(t, err, checkpoint.ErrRefused, "another type of states")
	q, err := store.OpenProvider(ctx, store.ProviderConfig[float64, int64]{Store: vfs.NewObjects()})
	require.NoError(t, err)
	defer q.Close()
	hf, err := q.Store(ctx, 0)
	require.NoError(t, err)
	defer hf.Close()
	require.ErrorIs(t, hf.Put(math.NaN(), 1, 1), codec.ErrNaN)
}
