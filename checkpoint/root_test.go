package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/vfs"
)

// kept is a root with n versions, snapshots of all, and a floor that follows.
func kept(t testing.TB, kind string, n, keep uint64) medium {
	m := roots[kind]()
	j := newJob(m, nil)
	j.keep = keep
	require.NoError(t, runJob(t.Context(), j, n))
	return m
}

func TestEmptyRoot(t *testing.T) {
	forStores(t, func(t *testing.T, m medium) {
		ctx := t.Context()
		log := vfs.NewLog("/ckpt", vfs.KindWrites)
		r := OpenRoot(vfs.WithStoreLog(m.open("r", nil), log))
		c, err := r.Newest(ctx)
		require.NoError(t, err)
		require.Nil(t, c)
		o, err := r.Owner(ctx)
		require.NoError(t, err)
		require.Nil(t, o)
		nums, err := r.Commits(ctx)
		require.NoError(t, err)
		require.Empty(t, nums)
		_, err = r.Commit(ctx, 1)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoError(t, r.Read(ctx, func(c *Commit) error { require.Nil(t, c); return nil }))
		require.Empty(t, log.String(), "readers write nothing")
	})
}

// TestNewestFollows: after one list a reader probes.
func TestNewestFollows(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	j := newJob(m, nil)
	require.NoError(t, j.run(ctx, 2))
	log := vfs.NewLog("", vfs.KindAll)
	r := OpenRoot(vfs.WithStoreLog(m.open("r", nil), log))
	c, err := r.Newest(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 2, c.Epoch)
	require.Equal(t, 1, log.Count(vfs.KindList))
	require.NoError(t, j.run(ctx, 5))
	c, err = r.Newest(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 5, c.Epoch)
	require.Equal(t, 1, log.Count(vfs.KindList), "no second list")
	o, err := r.Owner(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, o.Term)
	require.NoError(t, j.close())
}

// TestNewestAfterItsCommitIsGone: a reader that slept through a clean-up finds
// the newest commit by a list.
func TestNewestAfterItsCommitIsGone(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	j := newJob(m, nil)
	j.keep = 1
	require.NoError(t, j.run(ctx, 2))
	r := OpenRoot(m.open("r", nil))
	_, err := r.Newest(ctx)
	require.NoError(t, err)
	require.NoError(t, j.run(ctx, 9))
	c, err := r.Newest(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 9, c.Epoch)
	nums, err := r.Commits(ctx)
	require.NoError(t, err)
	require.Equal(t, []uint64{8, 9}, nums)
	require.NoError(t, j.close())
}

// TestGap: a hole at or above the floor is an error that names it; below, it is
// what clean-up leaves.
func TestGap(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	require.NoError(t, runJob(ctx, newJob(m, nil), 6))
	s := m.open("x", nil)
	require.NoError(t, s.Delete(ctx, "commits/4"))
	for what, do := range map[string]func() error{
		"newest": func() error { _, err := OpenRoot(s).Newest(ctx); return err },
		"start":  func() error { return newJob(m, nil).open(ctx) },
	} {
		err := do()
		var g *GapError
		require.ErrorAs(t, err, &g, what)
		require.Equal(t, []uint64{4, 0, 6}, []uint64{g.Missing, g.Floor, g.Newest})
		require.ErrorIs(t, err, ErrGap)
		require.ErrorContains(t, err, "commits/4")
	}
	require.Equal(t, []string{"owner/1"}, list(t, m, "owner/"))
}

// TestNothingBelowTheFloorIsRead: whatever lies there (P5).
func TestNothingBelowTheFloorIsRead(t *testing.T) {
	ctx := t.Context()
	m := kept(t, "objects", 8, 2)
	s := m.open("x", nil)
	for _, name := range []string{"commits/2", "commits/5", "offsets/1", "state/1/0/3.1.snapshot", "state/1/0/5.1.delta"} {
		putBytes(t, s, name, []byte("rubbish"))
	}
	r := OpenRoot(s)
	nums, err := r.Commits(ctx)
	require.NoError(t, err)
	require.Equal(t, []uint64{6, 7, 8}, nums)
	require.NoError(t, runJob(ctx, newJob(m, nil), 9))
	f, err := r.Files(ctx, 1, 0, 6)
	require.NoError(t, err)
	require.EqualValues(t, 6, f.Start.Version)
}

// TestReadStartsAgain: a reader under which files vanish starts again from the
// then newest commit, and gives up after 5 more tries.
func TestReadStartsAgain(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	j := newJob(m, nil)
	j.keep = 1
	require.NoError(t, j.run(ctx, 3))
	r := OpenRoot(m.open("r", nil))
	var seen []uint64
	err := r.Read(ctx, func(c *Commit) error {
		seen = append(seen, c.Epoch)
		if len(seen) < 3 { // the run goes on meanwhile
			require.NoError(t, j.run(ctx, c.Epoch+4))
		}
		n := 0
		return ReadRows(ctx, r, 1, 0, c.Epoch, nil, func(Row) error { n++; return nil })
	})
	require.NoError(t, err)
	require.Equal(t, []uint64{3, 7, 11}, seen)

	tries := 0
	err = r.Read(ctx, func(*Commit) error { tries++; return fmt.Errorf("state/1: %w", fs.ErrNotExist) })
	require.ErrorIs(t, err, ErrVanished)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, 6, tries)

	other := errors.New("other")
	tries = 0
	require.ErrorIs(t, r.Read(ctx, func(*Commit) error { tries++; return other }), other)
	require.Equal(t, 1, tries)
	require.NoError(t, j.close())
}

// TestReport12 reads versions over bad snapshots and bad deltas.
func TestReport12(t *testing.T) {
	ctx := t.Context()
	for what, spoil := range map[string]func(t *testing.T, s vfs.Store, name string){
		"flipped": func(t *testing.T, s vfs.Store, name string) {
			respoil(t, s, name, func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
		},
		"truncated": func(t *testing.T, s vfs.Store, name string) {
			respoil(t, s, name, func(b []byte) []byte { return nil })
		},
		"longer": func(t *testing.T, s vfs.Store, name string) {
			respoil(t, s, name, func(b []byte) []byte { return append(b, 0) })
		},
		"deleted": func(t *testing.T, s vfs.Store, name string) { require.NoError(t, s.Delete(ctx, name)) },
		"of another line": func(t *testing.T, s vfs.Store, name string) {
			respoil(t, s, name, func([]byte) []byte { // a snapshot of version 6 of an abandoned line
				n, _ := ParseStateName(name)
				var b writerBytes
				_, err := encodeRows(&b, statefile.Info{Kind: statefile.Snapshot, Operator: "counts", Partition: n.Part, Version: 6, KeyCodec: "string",
					StateCodec: "int64", Chain: statefile.Sum{9}}, map[string]value{"x": {state: []byte{2}}}, []string{"x"})
				require.NoError(t, err)
				return b
			})
		},
	} {
		m := kept(t, "objects", 6, 5) // snapshots of all, floor 1
		s := m.open("x", nil)
		want, _ := rowsOf(t, m, 1, 6)
		for p := range 2 {
			spoil(t, s, fmt.Sprintf("state/1/%d/6.1.snapshot", p))
		}
		spoil(t, s, "state/1/0/5.1.snapshot")
		read := func() (rows map[string]string, told int, err error) {
			rows = map[string]string{}
			r := OpenRoot(s)
			for p := range 2 {
				err = errors.Join(err, ReadRows(ctx, r, 1, p, 6, func(n Notice) { require.Equal(t, NoticeSnapshot, n.Kind); told++ }, func(row Row) error {
					rows[string(row.Key)] = fmt.Sprintf("%x @%d", row.State, row.Time)
					return nil
				}))
			}
			return rows, told, err
		}
		got, told, err := read()
		require.NoError(t, err, what)
		require.Equal(t, want, got, what)
		if what != "deleted" {
			require.Equal(t, 3, told, what)
		}
		// (v) a bad delta with no snapshot above: an error, and no partial state.
		spoil(t, s, "state/1/0/6.1.delta")
		_, _, err = read()
		require.Error(t, err, what)
		require.ErrorContains(t, err, "state/1/0/6.1.delta")
		require.ErrorContains(t, err, "partition 0, version 6")
		require.True(t, Bad(err), what)
	}
}

type writerBytes []byte

func (w *writerBytes) Write(p []byte) (int, error) { *w = append(*w, p...); return len(p), nil }

// respoil replaces an object.
func respoil(t testing.TB, s vfs.Store, name string, change func(b []byte) []byte) {
	b, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), name))
	putBytes(t, s, name, change(b))
}

// TestNoStart: when every snapshot is bad and what lies before is gone, the
// error says so.
func TestNoStart(t *testing.T) {
	ctx := t.Context()
	m := kept(t, "objects", 6, 1)
	s := m.open("x", nil)
	for _, name := range list(t, m, "state/1/0/") {
		if n, ok := ParseStateName(name); ok && n.Kind == statefile.Snapshot {
			respoil(t, s, name, func([]byte) []byte { return []byte("bad") })
		}
	}
	r := OpenRoot(s)
	_, err := r.Newest(ctx)
	require.NoError(t, err)
	err = ReadRows(ctx, r, 1, 0, 6, nil, func(Row) error { return nil })
	var n *NoStartError
	require.ErrorAs(t, err, &n)
	require.ErrorIs(t, err, ErrNoStart)
	require.EqualValues(t, 5, n.Floor)
	require.Len(t, n.Bad, 2)
	require.ErrorContains(t, err, `operator "counts", partition 0, version 6`)
}

// TestFilesOfStrangePartitions are errors, not panics.
func TestFilesOfStrangePartitions(t *testing.T) {
	ctx := t.Context()
	m := kept(t, "objects", 2, 1)
	r := OpenRoot(m.open("r", nil))
	for _, q := range [][3]int{{1, 2, 2}, {1, -1, 2}, {2, 0, 2}, {1, 0, 3}, {1, 0, 0}} {
		_, err := r.Files(ctx, q[0], q[1], uint64(q[2]))
		require.Error(t, err, "%v", q)
	}
	stop := errors.New("stop")
	require.ErrorIs(t, ReadRows(ctx, r, 1, 0, 2, nil, func(Row) error { return stop }), stop)
	done, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, ReadRows(done, OpenRoot(m.open("r", nil)), 1, 0, 2, nil, func(Row) error { return nil }), context.Canceled)
}

// TestCountsAreCompared: a commit that counts other keys than its files have.
func TestCountsAreCompared(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	require.NoError(t, runJob(ctx, newJob(m, nil), 2))
	s := m.open("x", nil)
	respoil(t, s, "commits/2", func(b []byte) []byte {
		c := &Commit{}
		require.NoError(t, decode(b, "commits/2", 2, c))
		c.Operators[0].Partitions[1].Keys++
		b, err := encode(c)
		require.NoError(t, err)
		return b
	})
	err := ReadRows(ctx, OpenRoot(s), 1, 1, 2, nil, func(Row) error { return nil })
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "it counts")
}

// TestDamagedRoot: each document whose content counts in a start, damaged in several
// ways, is an error that names it, before anything is written.
func TestDamagedRoot(t *testing.T) {
	ctx := t.Context()
	for _, name := range []string{"commits/3", "metadata/1", "offsets/3"} {
		for what, change := range map[string]func(b []byte) []byte{
			"flip": func(b []byte) []byte { b[len(b)/3] ^= 1; return b },
			"cut":  func(b []byte) []byte { return b[:len(b)/2] },
			"none": func(b []byte) []byte { return nil },
		} {
			m := roots["objects"]()
			require.NoError(t, runJob(ctx, newJob(m, nil), 3))
			s := m.open("x", nil)
			respoil(t, s, name, change)
			err := newJob(m, nil).open(ctx)
			require.ErrorIs(t, err, ErrCorrupt, "%s %s", what, name)
			require.ErrorContains(t, err, name)
			require.Equal(t, []string{"owner/1"}, list(t, m, "owner/"), "%s %s", what, name)
		}
	}
}

func TestStateNames(t *testing.T) {
	for _, n := range []StateName{
		{Number: 1, Part: 0, Version: 1, Term: 1, Kind: statefile.Delta},
		{Number: 12, Layout: 3, Part: 45, Version: 1<<64 - 1, Term: 7, Kind: statefile.Snapshot},
	} {
		got, ok := ParseStateName(n.String())
		require.True(t, ok, n)
		require.Equal(t, n, got)
	}
	for _, s := range []string{
		"", "state/", "state/1/0", "state/1/0/", "state/1/0/1.1", "state/1/0/1.1.x", "state/1/0/01.1.delta", "state/1/r0/0/1.1.delta",
		"state/1/rx/0/1.1.delta", "state/1/2/0/1.1.delta", "state/x/0/1.1.delta", "state/1/-1/1.1.delta", "state/1/0/1.1.delta/x",
		"state/1/0/-1.1.delta", "state/1/0/1.1.delta.tmp.x", "states/1/0/1.1.delta", "state/99999999999/0/1.1.delta",
	} {
		_, ok := ParseStateName(s)
		require.False(t, ok, s)
	}
	require.Equal(t, []string{"owner/3", "metadata/3", "offsets/3", "commits/3"}, []string{OwnerName(3), MetadataName(3), PlanName(3), CommitName(3)})
}

// TestLost: commits or plans that must have been there are missed, though none
// stands above them (P1, report 12: nothing starts from zero).
func TestLost(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	require.NoError(t, runJob(ctx, newJob(m, nil), 3))
	for what, tc := range map[string]struct {
		gone []string
		want GapError
	}{
		"all commits":           {[]string{"commits/1", "commits/2", "commits/3"}, GapError{Missing: 1, Planned: 3}},
		"the newest two":        {[]string{"commits/2", "commits/3"}, GapError{Missing: 2, Newest: 1, Planned: 3}},
		"the newest plan":       {[]string{"offsets/3"}, GapError{Missing: 3, Newest: 3, Plan: true}},
		"commits and plans":     {[]string{"commits/2", "commits/3", "offsets/3", "offsets/1"}, GapError{Missing: 1, Newest: 1, Plan: true}},
		"all commits and plans": {slices.Concat(list(t, m, "commits/"), list(t, m, "offsets/")), GapError{Missing: 1, Plan: true, State: "state/1/0/1.1.delta"}},
		"all but the state": {slices.DeleteFunc(list(t, m, ""), func(name string) bool {
			return strings.HasPrefix(name, "state/")
		}), GapError{Missing: 1, Plan: true, State: "state/1/0/1.1.delta"}},
	} {
		m := m.crash(1, 0)
		for _, name := range tc.gone {
			require.NoError(t, m.open("x", nil).Delete(ctx, name))
		}
		before := list(t, m, "")
		err := newJob(m, nil).open(ctx)
		var g *GapError
		require.ErrorAs(t, err, &g, what)
		require.Equal(t, tc.want, *g, what)
		require.ErrorContains(t, err, "restore ", what)
		require.Equal(t, before, list(t, m, ""), what)
	}
}

// TestNotLost: a run that ended before its first plan leaves nothing to miss, and
// neither does what is no state file (P1).
func TestNotLost(t *testing.T) {
	forStores(t, func(t *testing.T, m medium) {
		ctx := t.Context()
		j := newJob(m, nil)
		require.NoError(t, j.open(ctx))
		require.NoError(t, j.close())
		require.Equal(t, []string{"metadata/1", "owner/1"}, slices.DeleteFunc(list(t, m, ""), func(name string) bool { return name == "lock" }))
		putBytes(t, m.open("x", nil), "state/notes", []byte("of a person"))
		require.NoError(t, runJob(ctx, newJob(m, nil), 3))
		want, _ := reference(t, 3)
		require.Equal(t, want, state0(t, m))
	})
}
