package storetest_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/checkpoint/storetest"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/vfs"
)

// medium is an object store whose stores have one fault.
type medium struct {
	o   *vfs.Objects
	how string
}

func (m *medium) Open(o storetest.Options) (storetest.Stores, error) {
	s := vfs.Store(m.o)
	if o.Faults != nil {
		s = vfs.WithStoreFaults(s, o.Faults)
	}
	p, err := store.OpenProvider(context.Background(), store.ProviderConfig[storetest.Key, int64]{
		Store: s, Cache: o.Cache, Policy: store.EveryVersions(o.Every), RetryLimit: -1,
	})
	if err != nil {
		return nil, err
	}
	return &broken{p, m.how}, nil
}

func (m *medium) Crash(seed uint64, percent int) storetest.Medium {
	after := &medium{m.o.Clone(), m.how}
	if m.how == "forgets" && percent < 100 {
		list, _ := m.o.List(context.Background(), "commits/")
		if n := len(list); n > 0 {
			_ = after.o.Delete(context.Background(), list[n-1].Name)
		}
	}
	return after
}

func (m *medium) Files() vfs.Store { return m.o }

type broken struct {
	storetest.Stores
	how string
}

func (b *broken) Store(ctx context.Context, version uint64) (store.Handle[storetest.Key, int64], error) {
	h, err := b.Stores.Store(ctx, version)
	if err != nil {
		return nil, err
	}
	return &handle{Handle: h, how: b.how}, nil
}

func (b *broken) ReadStore(ctx context.Context, version uint64) (store.Reader[storetest.Key, int64], error) {
	r, err := b.Stores.ReadStore(ctx, version)
	if err != nil {
		return nil, err
	}
	return &reader{r, b.how}, nil
}

type reader struct {
	store.Reader[storetest.Key, int64]
	how string
}

func (r *reader) Metrics() store.Metrics {
	m := r.Reader.Metrics()
	if r.how == "repairs not counted" {
		m.SnapshotsRepaired = 0
	}
	return m
}

func (r *reader) Close() {
	if r.how != "reads after close" {
		r.Reader.Close()
	}
}

type handle struct {
	store.Handle[storetest.Key, int64]
	how       string
	forgotten bool
}

func (h *handle) Put(k storetest.Key, s, t int64) error {
	switch h.how {
	case "empty names lost":
		if k.Name == "" {
			return nil
		}
	case "negative numbers turned":
		k.N = max(k.N, -k.N)
	case "large numbers folded":
		if k.N > 1000 {
			k.N = 0
		}
	case "state turned":
		if s == -5 {
			s = 5
		}
	case "time lost":
		t = 0
	case "writes after the end":
		if err := h.Handle.Put(k, s, t); !errors.Is(err, store.ErrDone) {
			return err
		}
		return nil
	}
	return h.Handle.Put(k, s, t)
}

func (h *handle) Remove(k storetest.Key) error {
	if h.how == "tombstone lost" {
		return nil
	}
	return h.Handle.Remove(k)
}

func (h *handle) Iterate() iter.Seq2[storetest.Key, statemap.Entry[int64]] {
	if h.how == "live iterators" {
		return func(yield func(storetest.Key, statemap.Entry[int64]) bool) { h.Handle.Iterate()(yield) }
	}
	return h.Handle.Iterate()
}

func (h *handle) Prefix(prefix []byte) iter.Seq2[storetest.Key, statemap.Entry[int64]] {
	if h.how == "prefix of all" {
		return h.Handle.Iterate()
	}
	return h.Handle.Prefix(prefix)
}

func (h *handle) Commit(ctx context.Context) (uint64, error) {
	if h.how == "commit keeps quiet" {
		n, err := h.Handle.Commit(ctx)
		if err != nil {
			return h.Version() + 1, nil
		}
		return n, nil
	}
	return h.Handle.Commit(ctx)
}

func (h *handle) Close() {
	switch h.how {
	case "close does not abort":
		if h.HasCommitted() {
			h.Handle.Close()
		}
	case "handle reads after close":
	default:
		h.Handle.Close()
	}
}

func (h *handle) HasCommitted() bool { return h.Handle.HasCommitted() && !h.forgotten }

func (h *handle) Abort() error {
	h.forgotten = h.how == "abort forgets the commit"

	if h.how == "abort commits" && !h.HasCommitted() {
		_, _ = h.Handle.Commit(context.Background())
	}
	return h.Handle.Abort()
}

// The suite notices what it is there for.
func TestSuiteCatchesBrokenStores(t *testing.T) {
	for how, want := range map[string]string{
		"none":                 "",
		"time lost":            "tombstones and times",
		"tombstone lost":       "tombstones and times",
		"live iterators":       "ST17 iterators are snapshots",
		"prefix of all":        "ST16 prefixes",
		"commit keeps quiet":   "ST9 ST11 a version is made once",
		"abort commits":        "ST4 ST5 abort and keys",
		"writes after the end": "ST19 legality",
		"forgets":              "crash at every call",

		"empty names lost":         "keys and states of every kind",
		"negative numbers turned":  "keys and states of every kind",
		"large numbers folded":     "keys and states of every kind",
		"state turned":             "keys and states of every kind",
		"close does not abort":     "closed ones have no keys",
		"reads after close":        "closed ones have no keys",
		"handle reads after close": "closed ones have no keys",
		"abort forgets the commit": "ST19 legality",
		"repairs not counted":      "snapshots done without are counted",
	} {
		t.Run(how, func(t *testing.T) {
			found := storetest.Failing(t, func(*testing.T) storetest.Medium { return &medium{vfs.NewObjects(), how} })
			if want == "" {
				require.Empty(t, found)
			} else {
				require.Contains(t, found, want)
			}
		})
	}
}
