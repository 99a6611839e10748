package store_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/vfs"
)

// tester is a *testing.T, *testing.B or *rapid.T.
type tester interface {
	require.TestingT
	Helper()
}

// val is a state with its time, as a plain map has it.
type val struct {
	S int64
	T int64
}

// model is a version of a partition as a plain map.
type model map[string]val

// world is a run on a root: what an engine does around this package.
type world struct {
	t      tester
	store  vfs.Store
	root   *checkpoint.Root
	op     *store.Operator[string, int64]
	parts  int
	maint  *store.Maintainer
	clock  *clock.Manual
	policy store.Policy
	config func(*store.MaintainerConfig)
	retain int
	term   uint64

	mu     sync.Mutex
	live   []*statemap.Map[string, int64] // newest committed
	commit *checkpoint.Commit
	want   map[uint64][]model                                        // every committed version
	pins   int                                                       // taken and not released
	upload func(ctx context.Context, part int, version uint64) error // before a snapshot is written
	limit  uint64
	stats  []store.LoadStats

	notices []store.Notice
}

func mapOf() (*statemap.Map[string, int64], error) {
	return statemap.New[string, int64](statemap.Options[string]{})
}

func codecs(t tester) (*codec.Key[string], codec.Codec[int64]) {
	key, err := codec.KeyFor[string]()
	require.NoError(t, err)
	state, err := codec.For[int64]()
	require.NoError(t, err)
	return key, state
}

type option func(*world)

func withPolicy(p store.Policy) option                  { return func(w *world) { w.policy = p } }
func withConfig(f func(*store.MaintainerConfig)) option { return func(w *world) { w.config = f } }

// begin makes a run on a root with one operator "counts"; the root may have
// been used before by an earlier world.
func begin(t tester, s vfs.Store, parts int, term uint64, opts ...option) *world {
	t.Helper()
	w, err := tryBegin(t, s, parts, term, opts...)
	require.NoError(t, err)
	return w
}

func tryBegin(t tester, s vfs.Store, parts int, term uint64, opts ...option) (*world, error) {
	w := &world{
		t: t, store: s, parts: parts, term: term, want: map[uint64][]model{}, limit: math.MaxUint64,
		policy: store.EveryVersions(10), clock: clock.NewManual(time.Unix(1000, 0)),
	}
	for _, o := range opts {
		o(w)
	}
	ctx := context.Background()
	w.root = checkpoint.OpenRoot(s)
	meta := operator(parts)
	if term == 1 {
		if err := w.document(checkpoint.MetadataName(1), &checkpoint.Metadata{
			Seq: 1, Root: "root", Term: 1, Run: "run", Interval: int64(time.Second), Numbers: 1,
			Operators: []checkpoint.Operator{meta},
		}); err != nil {
			return nil, err
		}
	}
	newest, err := w.root.Newest(ctx)
	if err != nil {
		return nil, err
	}
	w.commit = newest
	key, state := codecs(t)
	w.op, err = store.NewOperator(store.Config[string, int64]{
		Store: s, Root: w.root, Operator: meta, Key: key, State: state, Put: s.PutIfAbsent, Term: term,
		Expect: w.policy.Versions,
	})
	require.NoError(t, err)
	if newest == nil {
		for range parts {
			m, err := mapOf()
			require.NoError(t, err)
			w.live = append(w.live, m)
		}
	} else {
		w.live, w.stats, err = w.op.LoadAll(ctx, newest.Epoch, 1, mapOf, nil)
		if err != nil {
			return nil, err
		}
	}
	cfg := store.MaintainerConfig{
		Store: s, Root: w.root, Clock: w.clock, Term: term, Tag: fmt.Sprintf("run%d", term), Policy: w.policy, Retain: w.retain,
		Units: []store.Unit{{Number: 1, Pin: w.pin}},
		Notice: func(n store.Notice) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.notices = append(w.notices, n)
		},
	}
	if w.config != nil {
		w.config(&cfg)
	}
	w.maint, err = store.NewMaintainer(cfg, newest, w.stats)
	require.NoError(t, err)
	return w, nil
}

func operator(parts int) checkpoint.Operator {
	return checkpoint.Operator{
		Name: "counts", Number: 1, Kind: "mapWithState", Partitions: parts, Partitioner: "hash",
		KeyCodec: statefile.KeyID[string](), StateCodec: "int64", Since: 1,
	}
}

func (w *world) document(name string, doc any) error {
	b, err := checkpoint.EncodeDocument(doc)
	require.NoError(w.t, err)
	return w.store.PutIfAbsent(context.Background(), name, func(wr io.Writer) error {
		_, err := wr.Write(b)
		return err
	})
}

func (w *world) pin(part int) (store.Pinned, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, v := w.live[part], w.commit.Epoch
	w.pins++
	return store.Pinned{
		Version: v,
		Write: func(ctx context.Context) (store.Written, error) {
			if w.upload != nil {
				if err := w.upload(ctx, part, v); err != nil {
					return store.Written{}, err
				}
			}
			return w.op.Snapshot(ctx, part, v, m)
		},
		Release: func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.pins--
		},
	}, nil
}

// change is what an epoch does to a partition's keys; a nil value removes.
type change map[string]*int64

func set(v int64) *int64 { return &v }

// epoch computes and commits the next epoch and tells the maintainer.
func (w *world) epoch(changes ...change) {
	w.t.Helper()
	require.NoError(w.t, w.tryEpoch(changes...))
}

func (w *world) tryEpoch(changes ...change) error {
	ctx := context.Background()
	n, now := uint64(1), int64(0)
	before := make([]checkpoint.PartitionCommit, w.parts)
	if w.commit != nil {
		n = w.commit.Epoch + 1
		copy(before, w.commit.Operators[0].Partitions)
	}
	now = int64(n) * int64(time.Second)
	next := make([]*statemap.Map[string, int64], w.parts)
	after := make([]checkpoint.PartitionCommit, w.parts)
	state := make([]model, w.parts)
	for p := range w.parts {
		m, err := w.live[p].Copy()
		require.NoError(w.t, err)
		next[p] = m
		if w.commit != nil {
			state[p] = maps.Clone(w.want[n-1][p])
		} else {
			state[p] = model{}
		}
		if p < len(changes) {
			for k, v := range changes[p] {
				if v == nil {
					require.NoError(w.t, m.Remove(k))
					delete(state[p], k)
				} else {
					require.NoError(w.t, m.Put(k, *v, now))
					state[p][k] = val{*v, now}
				}
			}
		}
		if after[p], err = w.op.WriteDelta(ctx, p, n, now, before[p], m, false); err != nil {
			return err
		}
		m.Seal()
	}
	if err := w.maint.BeforeCommit(ctx); err != nil {
		return err
	}
	c := &checkpoint.Commit{
		Epoch: n, Kind: checkpoint.KindBatch, Term: w.term, Run: "run", Time: now, Metadata: 1,
		Floor:     w.maint.Floor(w.limit),
		Operators: []checkpoint.OperatorCommit{{Number: 1, Partitions: after}},
	}
	w.want[n] = state // also if the answer is lost
	if err := w.document(checkpoint.CommitName(n), c); err != nil {
		return err
	}
	w.mu.Lock()
	w.live, w.commit = next, c
	w.mu.Unlock()
	if _, err := w.root.Newest(ctx); err != nil {
		return err
	}
	w.maint.Committed(c)
	return nil
}

// counts gives every partition its own change in epoch n: some keys set, some
// removed, and in some epochs nothing at all.
func counts(n uint64, parts int) (list []change) {
	for p := range parts {
		c := change{}
		if (n+uint64(p))%7 != 0 {
			c[fmt.Sprintf("key%d", n%5)] = set(int64(n)*100 + int64(p))
			if n%4 == 0 {
				c[fmt.Sprintf("key%d", (n+2)%5)] = nil
			}
		}
		list = append(list, c)
	}
	return list
}

func (w *world) run(to uint64) {
	w.t.Helper()
	for w.newest() < to {
		w.epoch(counts(w.newest()+1, w.parts)...)
	}
}

func (w *world) newest() uint64 {
	if w.commit == nil {
		return 0
	}
	return w.commit.Epoch
}

// round does maintenance.
func (w *world) round() {
	w.t.Helper()
	require.NoError(w.t, w.maint.Round(context.Background()))
}

// contents gives a version as a plain map.
func contents(m *statemap.Map[string, int64]) model {
	out := model{}
	for k, e := range m.All() {
		out[k] = val{e.State, e.Time}
	}
	return out
}

// check loads version n from the store, by a reader of its own, and compares.
func (w *world) check(n uint64) {
	w.t.Helper()
	for p := range w.parts {
		m, _, err := w.fresh().Load(context.Background(), p, n, mapOf, nil)
		require.NoError(w.t, err, "version %d partition %d", n, p)
		require.Equal(w.t, w.want[n][p], contents(m), "version %d partition %d", n, p)
	}
}

// checkKept loads every version from the oldest that is promised on.
func (w *world) checkKept(from uint64) {
	w.t.Helper()
	for n := max(from, 1); n <= w.newest(); n++ {
		w.check(n)
	}
}

// fresh is an operator of a program that has just come, with empty caches.
func (w *world) fresh() *store.Operator[string, int64] {
	root := checkpoint.OpenRoot(w.store)
	_, err := root.Newest(context.Background())
	require.NoError(w.t, err)
	key, state := codecs(w.t)
	op, err := store.NewOperator(store.Config[string, int64]{
		Store: w.store, Root: root, Operator: operator(w.parts), Key: key, State: state, Expect: w.policy.Versions,
	})
	require.NoError(w.t, err)
	return op
}

// names lists the state files of a partition.
func (w *world) names(part int) (list []string) {
	objects, err := w.store.List(context.Background(), checkpoint.StateFolder(1, 0, part))
	require.NoError(w.t, err)
	for _, o := range objects {
		list = append(list, o.Name[strings.LastIndexByte(o.Name, '/')+1:])
	}
	return list
}

// replace gives an object other bytes, as only damage does.
func replace(t tester, s vfs.Store, name string, b []byte) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, s.Delete(ctx, name))
	require.NoError(t, s.PutIfAbsent(ctx, name, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}))
}

func read(t tester, s vfs.Store, name string) []byte {
	t.Helper()
	b, err := s.Get(context.Background(), name)
	require.NoError(t, err)
	return b
}

func gone(t tester, s vfs.Store, name string) bool {
	t.Helper()
	_, err := s.Stat(context.Background(), name)
	if err == nil {
		return false
	}
	require.ErrorIs(t, err, fs.ErrNotExist)
	return true
}

func delta(part int, n uint64) string {
	return fmt.Sprintf("state/1/%d/%d.1.delta", part, n)
}

func snapshot(part int, n, term uint64) string {
	return fmt.Sprintf("state/1/%d/%d.%d.snapshot", part, n, term)
}

// commitAs commits epoch n of one partition as given.
func (w *world) commitAs(n uint64, pc checkpoint.PartitionCommit) {
	w.t.Helper()
	w.commit = &checkpoint.Commit{
		Epoch: n, Kind: checkpoint.KindBatch, Term: w.term, Run: "run", Time: int64(n) * 1e9, Metadata: 1,
		Operators: []checkpoint.OperatorCommit{{Number: 1, Partitions: []checkpoint.PartitionCommit{pc}}},
	}
	require.NoError(w.t, w.document(checkpoint.CommitName(n), w.commit))
}
