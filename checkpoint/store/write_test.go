package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/vfs"
)

// A version that changed nothing writes no file and keeps its chain hash; keys
// that came and went within it are no change.
func TestUnchangedVersionWritesNothing(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 1, 1)
	w.epoch(change{"a": set(1)})
	before := w.commit.Operators[0].Partitions[0]
	w.epoch(change{})
	next, err := w.live[0].Copy()
	require.NoError(t, err)
	require.NoError(t, next.Put("b", 1, 5))
	require.NoError(t, next.Remove("b"))
	pc, err := w.op.WriteDelta(context.Background(), 0, 3, 3, before, next, false)
	require.NoError(t, err)
	require.Equal(t, checkpoint.PartitionCommit{Keys: 1, Chain: before.Chain}, pc)
	require.Equal(t, []string{"1.1.delta"}, w.names(0))
	require.Equal(t, before.Chain, w.commit.Operators[0].Partitions[0].Chain)
	w.checkKept(1)
}

// D3: a base holds all entries in key order, whatever the order in which they
// came, and begins a new chain.
func TestBase(t *testing.T) {
	var bytesOf [2][]byte
	for i, keys := range [][]string{{"c", "a", "b"}, {"b", "c", "x", "a"}} {
		s := vfs.NewObjects()
		w := begin(t, s, 1, 1)
		m, err := mapOf()
		require.NoError(t, err)
		for _, k := range keys {
			require.NoError(t, m.Put(k, int64(k[0]), 7))
		}
		require.NoError(t, m.Remove("x"))
		prev := checkpoint.PartitionCommit{Chain: statefile.Sum{1}}
		pc, err := w.op.WriteDelta(context.Background(), 0, 1, 9, prev, m, true)
		require.NoError(t, err)
		require.True(t, pc.Base)
		require.EqualValues(t, 3, pc.Keys)
		require.Equal(t, "1.1.delta", pc.File)
		bytesOf[i] = read(t, s, delta(0, 1))
		require.EqualValues(t, len(bytesOf[i]), pc.Size)
		_, sum, err := statefile.Verify(bytes.NewReader(bytesOf[i]), "", nil)
		require.NoError(t, err)
		require.Equal(t, statefile.Chain(statefile.Sum{}, sum.Content), pc.Chain)

		// An empty base is a file too: the line begins with it.
		empty, err := mapOf()
		require.NoError(t, err)
		pc, err = w.op.WriteDelta(context.Background(), 0, 2, 9, prev, empty, true)
		require.NoError(t, err)
		require.NotEmpty(t, pc.File)
	}
	require.Equal(t, bytesOf[0], bytesOf[1])
}

// lost makes puts and throws their answers away, once each.
type lost struct {
	vfs.Store
	seen map[string]bool
	as   error
}

func (l *lost) PutIfAbsent(ctx context.Context, name string, write func(io.Writer) error) error {
	err := l.Store.PutIfAbsent(ctx, name, write)
	if err == nil && !l.seen[name] {
		l.seen[name] = true
		return l.as
	}
	return err
}

// P4: a taken name is read back; equal content is a lost answer, other content
// is an error, and so is a damaged file.
func TestTakenName(t *testing.T) {
	ctx := context.Background()
	s := vfs.NewObjects()
	w := begin(t, s, 1, 1)
	w.epoch(change{"a": set(1)})
	pc := w.commit.Operators[0].Partitions[0]
	again, err := w.op.WriteDelta(ctx, 0, 1, 1e9, checkpoint.PartitionCommit{}, w.live[0], false)
	require.NoError(t, err)
	require.Equal(t, pc, again)

	other, err := mapOf()
	require.NoError(t, err)
	require.NoError(t, other.Put("a", 2, 1e9))
	_, err = w.op.WriteDelta(ctx, 0, 1, 1e9, checkpoint.PartitionCommit{}, other, false)
	require.ErrorIs(t, err, store.ErrTaken)
	var fe *store.FileError
	require.ErrorAs(t, err, &fe)
	require.Equal(t, store.FileError{Operator: "counts", Partition: 0, Version: 1, Op: "write", Err: fe.Err}, *fe)

	flip(t, s, delta(0, 1), 30)
	_, err = w.op.WriteDelta(ctx, 0, 1, 1e9, checkpoint.PartitionCommit{}, w.live[0], false)
	require.ErrorIs(t, err, store.ErrTaken)
	require.ErrorIs(t, err, statefile.ErrCorrupt)

	// A snapshot is a cache: any whole one of the version and line will do.
	_, err = w.op.Snapshot(ctx, 0, 1, w.live[0])
	require.NoError(t, err)
	written, err := w.op.Snapshot(ctx, 0, 1, w.live[0])
	require.NoError(t, err)
	require.Equal(t, snapshot(0, 1, 1), written.Name)
	require.EqualValues(t, len(read(t, s, written.Name)), written.Size)
	flip(t, s, written.Name, 50)
	_, err = w.op.Snapshot(ctx, 0, 1, w.live[0])
	require.ErrorIs(t, err, store.ErrTaken)
}

func TestSnapshotsOfCommittedVersionsOnly(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 1, 1)
	w.epoch(change{"a": set(1)})
	next, err := w.live[0].Copy()
	require.NoError(t, err)
	_, err = w.op.Snapshot(context.Background(), 0, 2, next)
	require.ErrorIs(t, err, store.ErrNotCommitted)
	require.ErrorContains(t, err, "version 2 of operator counts partition 0")
	require.Equal(t, []string{"1.1.delta"}, w.names(0))
	// Nor of another version under a committed number.
	require.NoError(t, next.Put("b", 1, 1))
	_, err = w.op.Snapshot(context.Background(), 0, 1, next)
	require.ErrorContains(t, err, "another version")
}

// A snapshot is written from a version that the writer has left behind, as it
// was.
func TestSnapshotOfOlderVersion(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 1, 1)
	w.epoch(change{"a": set(1), "b": set(1)})
	old := w.live[0]
	w.epoch(change{"a": set(2), "b": nil, "c": set(3)})
	w.epoch(change{"a": nil})
	_, err := w.op.Snapshot(context.Background(), 0, 1, old)
	require.NoError(t, err)
	require.NoError(t, w.store.Delete(context.Background(), delta(0, 1)))
	w.checkKept(1)
}

// A snapshot of an abandoned line is whole, but its chain hash is not the
// committed one.
func TestSnapshotOfOtherLine(t *testing.T) {
	ctx := context.Background()
	s, other := vfs.NewObjects(), vfs.NewObjects()
	w, z := begin(t, s, 1, 1), begin(t, other, 1, 1)
	w.epoch(change{"a": set(1)})
	z.epoch(change{"a": set(2)})
	_, err := z.op.Snapshot(ctx, 0, 1, z.live[0])
	require.NoError(t, err)
	replace(t, s, snapshot(0, 1, 7), read(t, other, snapshot(0, 1, 1)))
	m, stats, err := w.fresh().Load(ctx, 0, 1, mapOf, nil)
	require.NoError(t, err)
	require.Equal(t, w.want[1][0], contents(m))
	require.Len(t, stats.Bad, 1)
	require.ErrorIs(t, stats.Bad[0].Err, statefile.ErrMismatch)

	// The same with a delta: here nothing stands above it.
	replace(t, s, delta(0, 1), read(t, other, delta(0, 1)))
	_, _, err = w.fresh().Load(ctx, 0, 1, mapOf, nil)
	require.ErrorIs(t, err, statefile.ErrMismatch)
	require.ErrorIs(t, err, store.ErrNotLoadable)
}

// A snapshot of a version that has never had a delta has no chain to compare.
func TestSnapshotOfEmptyLine(t *testing.T) {
	ctx := context.Background()
	s, other := vfs.NewObjects(), vfs.NewObjects()
	w, z := begin(t, s, 1, 1), begin(t, other, 1, 1)
	w.epoch(change{})
	z.epoch(change{"a": set(2)})
	_, err := z.op.Snapshot(ctx, 0, 1, z.live[0])
	require.NoError(t, err)
	replace(t, s, snapshot(0, 1, 7), read(t, other, snapshot(0, 1, 1)))
	m, stats, err := w.fresh().Load(ctx, 0, 1, mapOf, nil)
	require.NoError(t, err)
	require.Empty(t, contents(m))
	require.Len(t, stats.Bad, 1)
}

// A read that fails is not yet a bad snapshot.
func TestFailedReadIsTriedAgain(t *testing.T) {
	_, s := twenty(t)
	var f vfs.Faults
	f.Fail(vfs.Rule{Kinds: vfs.KindReadAt, Path: "*.snapshot", K: 1})
	faulty := &world{t: t, store: vfs.WithStoreFaults(s, &f), parts: 1}
	_, stats, err := faulty.fresh().Load(context.Background(), 0, 20, mapOf, nil)
	require.NoError(t, err)
	require.Equal(t, 1, f.Hits())
	require.EqualValues(t, 20, stats.Head)

	f.Clear()
	f.Fail(vfs.Rule{Kinds: vfs.KindReadAt, Path: "20.1.snapshot", Forever: true})
	_, stats, err = faulty.fresh().Load(context.Background(), 0, 20, mapOf, nil)
	require.NoError(t, err)
	require.EqualValues(t, 10, stats.Head)
	require.ErrorIs(t, stats.Bad[0].Err, vfs.ErrInjected)
}

func TestLoadEndsWithItsContext(t *testing.T) {
	w, _ := twenty(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := w.fresh().Load(ctx, 0, 20, mapOf, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, store.ErrNotLoadable)
	_, _, err = w.fresh().LoadAll(ctx, 20, 4, mapOf, nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = w.op.WriteDelta(ctx, 0, 21, 1, checkpoint.PartitionCommit{}, w.live[0], true)
	require.ErrorIs(t, err, context.Canceled)
}

// A commit that counts other keys than its files give is not served.
func TestKeysAreCounted(t *testing.T) {
	s := vfs.NewObjects()
	w := begin(t, s, 1, 1)
	w.epoch(change{"a": set(1), "b": set(2)})
	c := *w.commit
	c.Operators = []checkpoint.OperatorCommit{{Number: 1, Partitions: []checkpoint.PartitionCommit{w.commit.Operators[0].Partitions[0]}}}
	c.Operators[0].Partitions[0].Keys = 3
	b, err := checkpoint.EncodeDocument(&c)
	require.NoError(t, err)
	replace(t, s, "commits/1", b)
	_, _, err = w.fresh().Load(context.Background(), 0, 1, mapOf, nil)
	require.ErrorIs(t, err, store.ErrNotLoadable)
	require.ErrorContains(t, err, "2 keys")
}

// Whatever is done to whatever small file, a load gives the state or an error
// that says which file.
func TestDamage(t *testing.T) {
	s := vfs.NewObjects()
	w := begin(t, s, 1, 1, withPolicy(store.EveryVersions(3)))
	for n := uint64(1); n <= 7; n++ {
		w.epoch(counts(n, 1)...)
		w.round()
	}
	load := func(what string) {
		root := checkpoint.OpenRoot(s)
		if _, err := root.Newest(context.Background()); err != nil {
			return // a commit is damaged; checkpoint says which
		}
		m, _, err := w.fresh().Load(context.Background(), 0, 7, mapOf, nil)
		if err == nil {
			require.Equal(t, w.want[7][0], contents(m), what)
			return
		}
		require.Nil(t, m, what)
		require.ErrorIs(t, err, store.ErrNotLoadable, what)
	}
	for _, o := range list(t, s, "") {
		whole := read(t, s, o.Name)
		for i := range whole {
			b := bytes.Clone(whole)
			b[i] ^= 1 << (i % 8)
			replace(t, s, o.Name, b)
			load(fmt.Sprintf("%s byte %d flipped", o.Name, i))
			replace(t, s, o.Name, whole[:i])
			load(fmt.Sprintf("%s cut to %d", o.Name, i))
		}
		require.NoError(t, s.Delete(context.Background(), o.Name))
		load(o.Name + " deleted")
		replace(t, s, o.Name, append(bytes.Clone(whole), 0))
		load(o.Name + " with a byte more")
		replace(t, s, o.Name, whole)
	}
	load("whole")
}

// Equal changes give equal bytes: in memory, after a reload, after an attempt
// that was given up.
func TestRedoGivesEqualBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		w := begin(rt, vfs.NewObjects(), 1, 1)
		w.run(rapid.Uint64Range(1, 12).Draw(rt, "versions"))
		w.round()
		n := w.newest() + 1
		put := func(m *statemap.Map[string, int64], term uint64) []byte {
			next, err := m.Copy()
			require.NoError(rt, err)
			for i := range 4 {
				require.NoError(rt, next.Put(fmt.Sprint("key", i), int64(n), int64(n)))
			}
			require.NoError(rt, next.Remove("key4"))
			var out []byte
			key, state := codecs(rt)
			op, err := store.NewOperator(store.Config[string, int64]{Store: w.store, Root: w.root, Operator: operator(1), Key: key, State: state, Term: term,
				Put: func(_ context.Context, _ string, write func(io.Writer) error) error {
					var b bytes.Buffer
					defer func() { out = b.Bytes() }()
					return write(&b)
				}})
			require.NoError(rt, err)
			_, err = op.WriteDelta(ctx, 0, n, 5, w.commit.Operators[0].Partitions[0], next, false)
			require.NoError(rt, err)
			require.NoError(rt, next.Abort())
			return out
		}
		first := put(w.live[0], 1)
		require.Equal(rt, first, put(w.live[0], 1))
		loaded, _, err := w.fresh().Load(ctx, 0, n-1, mapOf, nil)
		require.NoError(rt, err)
		require.Equal(rt, first, put(loaded, 2))
	})
}

// Report 31: an answer that is lost at any put, of deltas and of commits, does
// not make an epoch another one.
func TestReport31LostAnswers(t *testing.T) {
	s := vfs.NewObjects()
	w := begin(t, &lost{Store: s, seen: map[string]bool{"metadata/1": true}, as: errors.New("connection reset")}, 2, 1)
	for n := uint64(1); n <= 6; {
		err := w.tryEpoch(counts(n, 2)...)
		if err == nil {
			n++
			continue
		}
		require.ErrorContains(t, err, "connection reset")
		if w.newest() == n-1 && !gone(t, s, checkpoint.CommitName(n)) {
			// The commit was made: a run reads it back (checkpoint does).
			break
		}
	}
	require.False(t, gone(t, s, delta(0, 1)))
	_, err := s.Stat(context.Background(), "commits/1")
	require.NoError(t, err)
	fresh := begin(t, s, 2, 2)
	require.Equal(t, w.want[1][0], contents(fresh.live[0]))
}

func TestConfigs(t *testing.T) {
	_, err := store.NewOperator(store.Config[string, int64]{})
	require.Error(t, err)
	key, state := codecs(t)
	op, err := store.NewOperator(store.Config[string, int64]{
		Store: vfs.NewObjects(), Root: checkpoint.OpenRoot(vfs.NewObjects()), Key: key, State: state, Operator: operator(2),
	})
	require.NoError(t, err)
	require.Equal(t, "counts", op.Info().Name)
	require.Equal(t, store.Partition{Operator: 1, Partition: 1}, op.ID(1))
	m, err := mapOf()
	require.NoError(t, err)
	_, err = op.WriteDelta(context.Background(), 0, 1, 1, checkpoint.PartitionCommit{}, m, true)
	require.ErrorContains(t, err, "opened for reading")
	_, _, err = op.Load(context.Background(), 0, 1, mapOf, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, _, err = op.Load(context.Background(), 0, 1, func() (*statemap.Map[string, int64], error) { return nil, errors.New("no") }, nil)
	require.Error(t, err)
}
