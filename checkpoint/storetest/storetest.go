// Package storetest is the public acceptance suite for versioned stores: [Run]
// tests any implementation of store.Versions, on whatever medium it keeps its
// files.
//
// # What it asserts
//
// Legality of calls; that a version is what was committed, before and after a
// restart, a crash and a failure of any call to the files; that removed keys
// stay removed and times are kept; that iterators do not see later changes; that
// snapshots, clean-up and caches change nothing but speed; that readers are not
// disturbed by writers. Names such as ST9 are those of the list of behaviours of
// Spark's store that the tests follow; where Statemill differs on purpose, the
// test says so.
//
// # What it does not do
//
// It measures no speed, and does not know the names of files: a test that
// damages some asks for all of them.
package storetest

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/vfs"
)

// Key is the type of the suite's keys.
type Key struct {
	Name string
	N    int64
}

// Stores is the store under test.
type Stores = store.Versions[Key, int64]

// Options are how a test wants a store.
type Options struct {
	// Cache is the number of versions in memory, 0 the default, −1 none.
	Cache int
	// Every is the number of versions between two snapshots, 0 the default.
	Every uint64
	// Faults is put before each call to what lies below the store; nil for none.
	Faults vfs.Injector
}

// Medium is what survives a store: a folder or a bucket. Its methods may be
// called while stores are open.
type Medium interface {
	// Open opens the store, as a process of its own: nothing of an earlier one
	// is in memory.
	Open(o Options) (Stores, error)
	// Crash gives the medium as it is after the machine has lost what was not
	// durable; percent of that is kept.
	Crash(seed uint64, percent int) Medium
	// Files gives the files, to be counted and damaged.
	Files() vfs.Store
}

// Run runs the suite. medium makes an empty medium.
func Run(t *testing.T, medium func(t *testing.T) Medium) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, medium(t)) })
	}
}

// Failing returns the names of the cases of Run that fail, without failing t: to
// prove that they notice what they are there for.
func Failing(t *testing.T, medium func(t *testing.T) Medium) (names []string) {
	t.Helper()
	for _, c := range cases {
		r := &recorder{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer r.end()
			c.run(r, medium(t))
		}()
		<-done
		if r.failed {
			names = append(names, c.name)
		}
	}
	return names
}

// TB is what the cases need of a *testing.T.
type TB interface {
	require.TestingT
	// Helper marks a function as one of the suite's own.
	Helper()
	// Cleanup calls f at the end of the case.
	Cleanup(f func())
}

// recorder is a TB that remembers the failure instead of telling it.
type recorder struct {
	failed  bool
	cleanup []func()
}

// Helper does nothing.
func (r *recorder) Helper() {}

// Errorf remembers the failure.
func (r *recorder) Errorf(string, ...any) { r.failed = true }

// FailNow ends the case.
func (r *recorder) FailNow() {
	r.failed = true
	runtime.Goexit()
}

// Cleanup keeps f for the end of the case.
func (r *recorder) Cleanup(f func()) { r.cleanup = append(r.cleanup, f) }

// end catches a panic and cleans up.
func (r *recorder) end() {
	if recover() != nil {
		r.failed = true
	}
	for i := len(r.cleanup) - 1; i >= 0; i-- {
		r.cleanup[i]()
	}
}

var cases = []struct {
	name string
	run  func(t TB, m Medium)
}{
	{"ST1 versions", versions},
	{"ST2 unknown versions", unknownVersions},
	{"ST3 changes while iterating", changeWhileIterating},
	{"ST4 ST5 abort and keys", abortAndKeys},
	{"ST6 reader beside writer", readerBesideWriter},
	{"ST7 ST8 failing commits", failingCommits},
	{"ST9 ST11 a version is made once", madeOnce},
	{"ST10 files", files},
	{"ST11 cache", cache},
	{"ST12 ST13 snapshots and clean-up", snapshots},
	{"ST14 corruption", corruption},
	{"ST15 ST21 metrics", metrics},
	{"ST16 prefixes", prefixes},
	{"ST17 iterators are snapshots", iterators},
	{"ST18 close while iterating", closeWhileIterating},
	{"ST19 legality", legality},
	{"ST22 ST26 close and open again", closeAndOpen},
	{"closed ones have no keys", closed},
	{"keys and states of every kind", everyKind},
	{"snapshots done without are counted", repairsCounted},
	{"tombstones and times", tombstonesAndTimes},
	{"crash at every call", crashes},
	{"random use", random},
	{"readers on many goroutines", manyReaders},
}

// content is a version as a plain map.
type content map[Key]statemap.Entry[int64]

func read(r store.Reader[Key, int64]) content {
	out := content{}
	for k, e := range r.Iterate() {
		out[k] = e
	}
	return out
}

// kit wraps a store for tests.
type kit struct {
	t TB
	m Medium
	Stores
}

func open(t TB, m Medium, o Options) *kit {
	t.Helper()
	s, err := m.Open(o)
	require.NoError(t, err)
	k := &kit{t, m, s}
	t.Cleanup(func() { _ = s.Close() })
	return k
}

func (k *kit) again(o Options) *kit {
	k.t.Helper()
	require.NoError(k.t, k.Close())
	return open(k.t, k.m, o)
}

func (k *kit) handle(version uint64) store.Handle[Key, int64] {
	k.t.Helper()
	h, err := k.Store(context.Background(), version)
	require.NoError(k.t, err)
	return h
}

// at gives a version's content.
func (k *kit) at(version uint64) content {
	k.t.Helper()
	r, err := k.ReadStore(context.Background(), version)
	require.NoError(k.t, err)
	defer r.Close()
	require.Equal(k.t, version, r.Version())
	return read(r)
}

// commit commits a handle and closes it.
func (k *kit) commit(h store.Handle[Key, int64]) uint64 {
	k.t.Helper()
	n, err := h.Commit(context.Background())
	require.NoError(k.t, err)
	require.True(k.t, h.HasCommitted())
	h.Close()
	return n
}

// next makes the next version by do.
func (k *kit) next(do func(h store.Handle[Key, int64])) uint64 {
	k.t.Helper()
	h := k.handle(k.Newest())
	do(h)
	return k.commit(h)
}

func key(name string) Key { return Key{name, 0} }

func (k *kit) put(h store.Handle[Key, int64], key Key, v int64) {
	k.t.Helper()
	require.NoError(k.t, h.Put(key, v, 10*v))
}

func (k *kit) get(r store.Reader[Key, int64], key Key, want int64) {
	k.t.Helper()
	e, ok, err := r.Get(key)
	require.NoError(k.t, err)
	require.True(k.t, ok, "%v", key)
	require.Equal(k.t, want, e.State)
}

func (k *kit) none(r store.Reader[Key, int64], key Key) {
	k.t.Helper()
	_, ok, err := r.Get(key)
	require.NoError(k.t, err)
	require.False(k.t, ok, "%v", key)
}

func of(pairs ...any) content {
	out := content{}
	for i := 0; i < len(pairs); i += 2 {
		v := int64(pairs[i+1].(int))
		k, ok := pairs[i].(Key)
		if !ok {
			k = key(pairs[i].(string))
		}
		out[k] = statemap.Entry[int64]{State: v, Time: 10 * v}
	}
	return out
}

// prefix gives the canonical bytes that all keys of a name begin with.
func prefix(t TB, name string) []byte {
	c, err := codec.KeyFor[Key]()
	require.NoError(t, err)
	b := c.Append(nil, Key{Name: name})
	return b[:len(b)-8]
}
