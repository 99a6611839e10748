package receiver_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/source/receiver"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// life is a job's life with a log, as its checkpoint and its senders know it.
type life struct {
	last   *source.Plan // of which the checkpoint knows; the one before it is committed
	acked  []string     // by offset
	unsure []string     // of the first call of store that failed after the last that was acknowledged
}

// live stores, plans, commits and forgets, with a file system that may fail; a call that failed is not made again.
func (l *life) live(t *testing.T, fsys vfs.FS) {
	h := newHand()
	s := receiver.New(fsys, "in/deep", strings(t), receiver.Receiver[string](h))
	s.SegmentBytes = 100
	if s.Open(t.Context(), l.last) != nil {
		return
	}
	defer s.Close()
	for i := 0; i < 16; i += 2 {
		some := records(i, i+2)
		if h.store(some...) == nil {
			l.acked, l.unsure = append(l.acked, some...), nil
		} else if l.unsure == nil {
			l.unsure = some
		}
		if i%4 == 0 {
			continue
		}
		if l.last != nil && s.Committed(t.Context(), *l.last) != nil {
			continue
		}
		if p, err := s.Plan(t.Context(), source.Limits{}); err == nil {
			l.last = &p
		}
	}
}

// after checks what the next run finds, with the checkpoint or without.
func (l *life) after(t *testing.T, fsys vfs.FS, last *source.Plan, what string) {
	h := newHand()
	s := receiver.New(fsys, "in/deep", strings(t), receiver.Receiver[string](h))
	require.NoError(t, s.Open(t.Context(), last), what)
	defer func() { require.NoError(t, s.Close(), what) }()
	p := plan(t, s)
	if from := p.Ranges[0].From; last == nil {
		if l.last != nil {
			require.LessOrEqual(t, from, l.last.Ranges[0].From, what)
		}
	} else {
		require.Equal(t, last.Ranges[0].Until, from, what)
		want, got := l.acked[last.Ranges[0].From:from], read(t, s, *last)
		require.True(t, slices.Equal(want, got), "%s: want %q, got %q", what, want, got)
	}
	want := l.acked[p.Ranges[0].From:]
	got := read(t, s, p)
	if len(got) > len(want) {
		want = slices.Concat(want, l.unsure)
	}
	require.True(t, slices.Equal(want, got), "%s: want %q, got %q", what, want, got)
	require.NoError(t, h.store("next"), what)
	require.NoError(t, s.Committed(t.Context(), p), what)
	p = plan(t, s)
	require.Equal(t, []string{"next"}, read(t, s, p), what)
	require.NoError(t, s.Committed(t.Context(), p), what)
	files, err := fsys.ReadDir("in/deep")
	require.NoError(t, err)
	require.LessOrEqual(t, len(files), 4, "committed records and failed files take no room: %s: %v", what, files)
}

// Report 13, D7: a crash or a failure at every call of the file system, commits and the removals after them
// included, with what was not synced lost in part or whole: no start is refused, all that was acknowledged is
// there, in order, and at most the group that was under way besides.
func TestEveryCallFails(t *testing.T) {
	for _, rule := range []vfs.Rule{{Dead: true}, {Dead: true, After: true}, {}, {After: true}} {
		rule.Err = io.ErrClosedPipe
		for k, hit := 1, true; hit; k++ {
			mem := vfs.NewMem()
			faults := new(vfs.Faults)
			rule.K = k
			faults.Fail(rule)
			var l life
			l.live(t, vfs.WithFaults(mem, faults))
			hit = faults.Hits() > 0
			for _, kept := range []int{0, 30, 50, 100} {
				for seed := range uint64(3) {
					for _, last := range []*source.Plan{l.last, nil} {
						what := fmt.Sprintf("call %d, dead %v, after %v, %d %% kept, seed %d, plan %v", k, rule.Dead, rule.After, kept, seed, last)
						l.after(t, mem.CrashClone(rand.New(rand.NewPCG(seed, uint64(k))), kept), last, what)
					}
					if kept == 0 || kept == 100 {
						break // alike for every seed
					}
				}
			}
		}
	}
}

// Report 13: one error of a sync, long ago, is not in the way of a later start. The file that was begun in vain would
// not join the others when those before and behind it are forgotten.
func TestFailedFileIsNotLeft(t *testing.T) {
	mem := vfs.NewMem()
	h := newHand()
	s := open(t, mem, h, nil)
	require.NoError(t, h.store("a"))
	require.NoError(t, s.Close())
	faults := new(vfs.Faults)
	h = newHand()
	s = open(t, vfs.WithFaults(mem, faults), h, nil)
	faults.Fail(vfs.Rule{Kinds: vfs.KindSync, Path: "*.segment", Err: io.ErrClosedPipe})
	require.ErrorIs(t, h.store("b"), io.ErrClosedPipe)
	var p source.Plan
	for i := range 4 {
		require.NoError(t, h.store(records(10*i, 10*i+10)...))
		p = plan(t, s)
		require.NoError(t, s.Committed(t.Context(), p))
	}
	require.NoError(t, s.Close())
	for _, last := range []*source.Plan{&p, nil} {
		require.NoError(t, open(t, mem, newHand(), last).Close())
	}
}

// A disk that is full leaves nothing behind: not for each record that is sent again, and not what could not be removed
// then (report 13).
func TestFullDiskLeavesNothing(t *testing.T) {
	noSpace := errors.New("no space left on device")
	mem := vfs.NewMem()
	faults := new(vfs.Faults)
	h := newHand()
	s := open(t, vfs.WithFaults(mem, faults), h, nil)
	require.NoError(t, h.store("a"))
	names := func() (out []string) {
		files, err := mem.ReadDir("in")
		require.NoError(t, err)
		for _, f := range files {
			out = append(out, f.Name)
		}
		return out
	}
	before := names()
	full := func() {
		faults.Fail(vfs.Rule{Kinds: vfs.KindWrite, Path: "*.segment", Forever: true, Err: noSpace})
		for range 20 {
			require.ErrorIs(t, h.store("b"), noSpace)
		}
	}
	full()
	require.Equal(t, before, names())
	faults.Fail(vfs.Rule{Kinds: vfs.KindRemove, Forever: true})
	full()
	require.Greater(t, len(names()), 20)
	require.ErrorIs(t, s.Committed(t.Context(), plan(t, s)), vfs.ErrInjected, "it is told")
	faults.Clear()
	require.NoError(t, s.Committed(t.Context(), plan(t, s)))
	require.Equal(t, before, names())

	for i := range 20 { // there is room for a head, and for no block
		faults.Fail(vfs.Rule{Kinds: vfs.KindSync, Path: "*.segment", K: 1 + 2*i, Err: noSpace})
	}
	for range 20 {
		require.ErrorIs(t, h.store("b"), noSpace)
	}
	require.Len(t, names(), len(before)+1)
	require.NoError(t, h.store("b"))
	require.Equal(t, []string{"b"}, read(t, s, plan(t, s)))
	before = names()

	faults.Fail(vfs.Rule{Kinds: vfs.KindRemove, Forever: true})
	full()
	require.NoError(t, s.Close())
	s = open(t, mem, newHand(), nil) // another process
	require.Equal(t, before, names())
	require.Equal(t, []string{"a", "b"}, read(t, s, plan(t, s)))
}

// Report 13: what a power loss leaves of files that were being removed: of three the one in the middle is gone.
func TestRemovalsAreLostInPart(t *testing.T) {
	mem := vfs.NewMem()
	h := newHand()
	s := open(t, mem, h, nil)
	var p source.Plan
	for range 2 {
		for i := range 8 {
			require.NoError(t, h.store(records(10*i, 10*i+10)...))
		}
		p = plan(t, s)
		require.NoError(t, s.Committed(t.Context(), p))
	}
	for seed := range uint64(20) {
		for _, last := range []*source.Plan{&p, nil} {
			clone := mem.CrashClone(rand.New(rand.NewPCG(1, seed)), 50)
			require.NoError(t, open(t, clone, newHand(), last).Close(), "seed %d", seed)
		}
	}
	// Earlier versions did not order their removals: with a checkpoint that is mended too, whatever came back.
	for name, b := range map[string][]byte{"00000000000000000001.segment": []byte("any bytes, so many that there is a head and more"), "00000000000000000003.segment": nil} {
		clone := mem.CrashClone(nil, 100)
		require.NoError(t, vfs.WriteFile(clone, filepath.Join("in", name), b))
		require.NoError(t, open(t, clone, newHand(), &p).Close())
		_, err := clone.Stat(filepath.Join("in", name))
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	require.NoError(t, s.Close())
}
