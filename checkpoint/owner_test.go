package checkpoint

import (
	"errors"
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// TestReport14TwoRuns: the second of two runs on a local disk is told who owns
// the root and since when, and writes nothing.
func TestReport14TwoRuns(t *testing.T) {
	ctx := t.Context()
	m := roots["mem"]()
	a := namedJob("first", m, nil)
	require.NoError(t, a.run(ctx, 1))
	before := list(t, m, "")
	for _, takeover := range []Takeover{TakeoverAuto, TakeoverNever} {
		b := newJob(m, nil)
		b.cfg.Takeover = takeover
		err := b.open(ctx)
		var o *OwnedError
		require.ErrorAs(t, err, &o)
		require.ErrorIs(t, err, ErrOwned)
		require.Equal(t, "host here pid 7 run first since 2023-11-14T22:13:20Z", o.Holder)
		require.Equal(t, []any{"first", "here", 7, int64(zero)}, []any{o.Run, o.Host, o.PID, o.Since})
		for _, word := range []string{"run first", "process 7 on here", "since 2023-11-14T22:13:20Z", "stop it first"} {
			require.ErrorContains(t, err, word)
		}
	}
	require.Equal(t, before, list(t, m, ""))
	require.NoError(t, a.run(ctx, 2), "the owner goes on")
	require.NoError(t, a.close())
	require.NoError(t, runJob(ctx, newJob(m, nil), 3), "a free root is the next one's")
}

// TestReport14Objects: on a store without locks a start takes over, and the
// older run is told before its next epoch is committed.
func TestReport14Objects(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	a := newJob(m, nil)
	require.NoError(t, a.run(ctx, 1))
	b := namedJob("second", m, nil)
	require.NoError(t, b.run(ctx, 2))
	before := list(t, m, "")
	err := a.run(ctx, 2)
	require.ErrorIs(t, err, ErrNotOwner)
	var n *NotOwnerError
	require.ErrorAs(t, err, &n)
	require.Equal(t, []uint64{1, 2}, []uint64{n.Term, n.Newer})
	require.Equal(t, before, list(t, m, ""), "it has written nothing more")

	c := newJob(m, nil)
	c.cfg.Takeover = TakeoverNever
	err = c.open(ctx)
	require.ErrorIs(t, err, ErrOwned)
	require.ErrorContains(t, err, "run second")
	require.NoError(t, b.run(ctx, 3))
}

// TestForce takes the root from a run that holds its lock.
func TestForce(t *testing.T) {
	ctx := t.Context()
	m := roots["mem"]()
	a := newJob(m, nil)
	require.NoError(t, a.run(ctx, 1))
	b := newJob(m, nil)
	b.cfg.Takeover = TakeoverForce
	var told []string
	b.cfg.Notice = func(n Notice) { told = append(told, n.Text) }
	require.NoError(t, b.run(ctx, 2))
	require.Contains(t, strings.Join(told, "\n"), "passed over by force")
	require.ErrorIs(t, a.run(ctx, 3), ErrNotOwner)
	require.NoError(t, b.run(ctx, 3))
	require.NoError(t, b.close())
}

func TestHolderOfStrangers(t *testing.T) {
	e := ownedBy("vim", nil)
	require.ErrorContains(t, e, "vim")
	require.ErrorContains(t, ownedBy("", nil), "has not named itself")
	require.ErrorContains(t, ownedBy("", &Owner{Run: "x", Host: "h", PID: 3}), "run x")
	require.ErrorContains(t, ownedBy("host a pid b run c since d", nil), "host a pid b")
}

// TestCallsInOrder: the calls of a first start, of an epoch, and of a later
// start, in their order: each document is whole, named and durable before what
// follows (design: offsets/N, deltas, outputs, commits/N).
func TestCallsInOrder(t *testing.T) {
	for kind, kinds := range map[string]vfs.Kind{
		"mem":     vfs.KindWrites &^ vfs.KindClose,
		"objects": vfs.KindAll &^ (vfs.KindWrite | vfs.KindReadAt),
	} {
		ctx := t.Context()
		m := roots[kind]()
		log := vfs.NewLog("/ckpt", kinds)
		logged := func() *job {
			j := namedJob("run", m, nil, counts("counts", 1))
			if mm, ok := m.(*memMedium); ok {
				d, err := vfs.NewDir(vfs.WithLog(mm.fs, log), "/ckpt", "run")
				require.NoError(t, err)
				j.cfg.Store = d
			} else {
				j.cfg.Store = vfs.WithStoreLog(j.cfg.Store, log)
			}
			return j
		}
		j := logged()
		require.NoError(t, j.open(ctx))
		golden(t, "calls."+kind+".first-start", log)
		require.NoError(t, j.run(ctx, 1))
		golden(t, "calls."+kind+".first-epoch", log)
		require.NoError(t, j.run(ctx, 2))
		golden(t, "calls."+kind+".epoch", log)
		require.NoError(t, j.close())
		log.Reset()
		j = logged()
		require.NoError(t, j.open(ctx))
		golden(t, "calls."+kind+".start", log)
		require.NoError(t, j.close())
		log.Reset()
		j = logged()
		j.cfg.Operators[0].Partitions, j.cfg.Rescale = 2, true
		require.NoError(t, j.open(ctx))
		golden(t, "calls."+kind+".rescale", log)
		require.NoError(t, j.close())
	}
}

var rewrite0 = flag.Bool("rewrite", false, "write the golden logs of calls anew")

// golden compares a log with its file and begins a new one.
func golden(t *testing.T, name string, log *vfs.Log) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	got := log.String()
	log.Reset()
	if *rewrite0 {
		d, err := vfs.NewDir(vfs.Disk(), "testdata", "rewrite")
		require.NoError(t, err)
		require.NoError(t, d.Delete(t.Context(), name+".txt"))
		putBytes(t, d, name+".txt", []byte(got))
		return
	}
	want, err := vfs.ReadFile(vfs.Disk(), path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, path)
}

// TestNoListsInSteadyState: epochs list nothing (report 16).
func TestNoListsInSteadyState(t *testing.T) {
	m := roots["objects"]()
	j := newJob(m, nil)
	log := vfs.NewLog("/ckpt", vfs.KindAll)
	j.cfg.Store = vfs.WithStoreLog(j.cfg.Store, log)
	require.NoError(t, j.run(t.Context(), 2))
	log.Reset()
	require.NoError(t, j.run(t.Context(), 102))
	require.Zero(t, log.Count(vfs.KindList))
	require.Equal(t, 100, log.Count(vfs.KindGet|vfs.KindReadAt), "what it has written it does not read, but for its own owner file")
	require.Equal(t, 200, log.Count(vfs.KindStat), "two owner checks an epoch")
	require.NoError(t, j.close())
}

// TestMisuse: calls out of order are named and change nothing.
func TestMisuse(t *testing.T) {
	ctx := t.Context()
	j := newJob(roots["objects"](), nil)
	require.NoError(t, j.open(ctx))
	s := j.s
	require.ErrorContains(t, s.Deltas(ctx), `Deltas was called out of order: the session waits for "idle after 0"`)
	require.Error(t, s.Outputs())
	require.Error(t, s.Sinks(ctx, CommitInput{}, nil))
	_, err := s.Commit(ctx, CommitInput{})
	require.Error(t, err)
	require.NoError(t, s.Plan(ctx, Plan{Time: zero + 1}))
	require.Error(t, s.Plan(ctx, Plan{}))
	require.Error(t, s.Change(ctx))
	require.NoError(t, s.Deltas(ctx))
	require.NoError(t, s.Outputs())
	for _, ops := range [][]OperatorCommit{nil, {{Number: 2, Partitions: make([]PartitionCommit, 2)}}, {{Number: 1, Partitions: make([]PartitionCommit, 3)}},
		{{Number: 1, Partitions: []PartitionCommit{{File: "../../x"}, {}}}}} {
		_, err = s.Commit(ctx, CommitInput{Operators: ops})
		require.Error(t, err)
	}
	c, err := s.Commit(ctx, CommitInput{Operators: []OperatorCommit{{Number: 1, Partitions: make([]PartitionCommit, 2)}}, Floor: 99})
	require.NoError(t, err)
	require.EqualValues(t, 1, c.Floor, "not above the epoch")
	cause := errors.New("the user's function failed")
	require.NoError(t, s.Plan(ctx, Plan{Time: zero + 2}))
	require.ErrorIs(t, s.Aborted(ctx, cause), cause)
	require.ErrorIs(t, s.Plan(ctx, Plan{}), cause, "the session is over")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
}
