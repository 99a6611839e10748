package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/vfs"
)

// Report 15: the upload of snapshot 10 is held up until version 25, two are
// kept. Every promised version loads at every step.
func TestReport15SlowUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := begin(t, vfs.NewObjects(), 1, 1, withPolicy(store.EveryVersions(5)))
		gate := make(chan struct{})
		w.upload = func(ctx context.Context, _ int, v uint64) error {
			if v != 10 {
				return nil
			}
			select {
			case <-gate:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		go func() { _ = w.maint.Run(ctx) }()
		for n := uint64(1); n <= 40; n++ {
			if n == 19 { // the commit of 15 waits, as the chain since version 5 comes near twice the interval
				close(gate)
			}
			if n > 14 && n < 19 {
				continue
			}
			if w.newest() == 14 {
				synctest.Wait()
			}
			w.epoch(change{"a": set(int64(n)), fmt.Sprint(n % 3): set(1)})
			synctest.Wait()
			w.checkKept(w.maint.Stats().Oldest)
		}
		require.Positive(t, w.maint.Stats().Deleted)
		require.Greater(t, w.maint.Stats().Floor, uint64(20))
		cancel()
		synctest.Wait()
		require.Zero(t, w.pins)
	})
}

// noDeadline keeps rapid from asking for the deadline, which a bubble refuses.
type noDeadline struct{ testing.TB }

// machine is a run with maintenance beside it, for the property test.
type machine struct {
	*world
	mem    *vfs.Mem
	stop   context.CancelFunc
	kept   uint64
	held   map[int]chan struct{}
	failed int
}

func dir(t tester, fsys vfs.FS, term uint64) vfs.Store {
	d, err := vfs.NewDir(fsys, "/ckpt", fmt.Sprintf("run%d", term))
	require.NoError(t, err)
	return d
}

func (m *machine) start(t tester, mem *vfs.Mem, term uint64, parts int, policy store.Policy) {
	want := map[uint64][]model{}
	if m.world != nil {
		want = m.want
	}
	m.mem, m.held = mem, map[int]chan struct{}{}
	m.world = begin(t, dir(t, mem, term), parts, term, withPolicy(policy))
	m.want = want
	m.upload = func(ctx context.Context, part int, _ uint64) error {
		m.mu.Lock()
		gate, fail := m.held[part], m.failed > 0
		m.failed = max(0, m.failed-1)
		m.mu.Unlock()
		if fail {
			return errors.New("upload failed")
		}
		if gate == nil {
			return nil
		}
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	go func() { _ = m.maint.Run(ctx) }()
}

// Report 15, property: random commits, snapshots, delays, clean-ups, failures,
// crashes; after each step all kept versions load and equal a plain map.
func TestReport15Property(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(noDeadline{t}, func(rt *rapid.T) {
			parts := rapid.IntRange(1, 3).Draw(rt, "parts")
			every := rapid.Uint64Range(1, 6).Draw(rt, "every")
			policy := store.EveryVersions(every)
			if rapid.Bool().Draw(rt, "by size") {
				policy = policy.With(store.BySize(600))
			}
			m := &machine{}
			m.start(rt, vfs.NewMem(), 1, parts, policy)
			defer func() {
				m.stop()
				synctest.Wait()
			}()
			for range rapid.IntRange(5, 50).Draw(rt, "steps") {
				m.step(rt, policy)
				synctest.Wait()
				m.kept = max(m.kept, m.maint.Stats().Oldest)
				m.checkKept(m.kept)
			}
		})
	})
}

func (m *machine) step(rt *rapid.T, policy store.Policy) {
	switch op := rapid.IntRange(0, 11).Draw(rt, "op"); {
	case op < 6:
		var list []change
		for range m.parts {
			c := change{}
			for _, k := range rapid.SliceOfN(rapid.IntRange(0, 5), 0, 3).Draw(rt, "keys") {
				c[fmt.Sprint("k", k)] = nil
				if rapid.Bool().Draw(rt, "set") {
					c[fmt.Sprint("k", k)] = set(rapid.Int64().Draw(rt, "state"))
				}
			}
			list = append(list, c)
		}
		// A commit that waits for a held upload would wait for ever; it does so a tenth
		// before twice the interval.
		if n := policy.Versions; m.maint.Stats().ChainMax >= 2*n-n/5 {
			m.release()
		}
		m.epoch(list...)
	case op == 6:
		m.mu.Lock()
		if part := rapid.IntRange(0, m.parts-1).Draw(rt, "part"); m.held[part] == nil {
			m.held[part] = make(chan struct{})
		}
		m.mu.Unlock()
	case op == 7:
		m.release()
	case op == 8:
		m.mu.Lock()
		m.failed++
		m.mu.Unlock()
	case op == 9:
		m.clock.Advance(policyTime)
	case op == 10:
		// The windows of the engine need an older version.
		m.limit = rapid.Uint64Range(0, m.newest()).Draw(rt, "limit")
	default:
		seed := rapid.Uint64().Draw(rt, "seed")
		after := m.mem.CrashClone(rand.New(rand.NewPCG(seed, 1)), rapid.IntRange(0, 100).Draw(rt, "percent"))
		m.stop()
		synctest.Wait()
		m.start(rt, after, m.term+1, m.parts, policy)
	}
}

const policyTime = store.DefaultInterval

func (m *machine) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for part, gate := range m.held {
		close(gate)
		delete(m.held, part)
	}
}
