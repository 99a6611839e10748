package checkpoint

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// newestCounters are those of the newest commit.
func newestCounters(t *testing.T, m medium) map[string]int64 {
	c, err := OpenRoot(m.open("reader", nil)).Newest(t.Context())
	require.NoError(t, err)
	return c.Counters
}

// TestCountsOfEveryCrash: wherever the run dies in an epoch, the next one counts it
// once, with all that its commit would have said; adopted or computed again.
func TestCountsOfEveryCrash(t *testing.T) {
	for kind := range roots {
		for _, path := range []string{"counts/3.2", "sink/a/begin", "sink/a/commit", "sink/b/begin", "sink/b/commit", "commits/3"} {
			w := out(t, kind, 2, path, nil)
			j := w.job(nil)
			told := watch(j)
			require.NoError(t, runJob(t.Context(), j, 3), path)
			require.Equal(t, path == "commits/3", strings.Contains(strings.Join(*told, "\n"), "epoch 3 was out already"), path)
			require.Equal(t, map[string]int64{totalRecords: 30, "records": 10}, newestCounters(t, w.m), path)
			require.NoError(t, runJob(t.Context(), w.job(nil), 4), path)
			require.EqualValues(t, 40, newestCounters(t, w.m)[totalRecords], path)
		}
	}
}

// TestCountsOfTheRunThatIsAdopted: what a run counts may depend on the attempt. Those
// of the run whose deltas are adopted count, and a digest does not compare them.
func TestCountsOfTheRunThatIsAdopted(t *testing.T) {
	extra := func(n int64) func(j *job) { return func(j *job) { j.extra = n } }
	for kind := range roots {
		for _, path := range []string{"sink/a/begin", "sink/b/begin"} { // no sink has it, or one
			w := out(t, kind, 2, path, extra(1000))     // term 2
			w = w.die(t, 3, "commits/3", extra(100_00)) // term 3 wrote what was missing
			require.NoError(t, runJob(t.Context(), w.job(nil), 3))
			require.EqualValues(t, 30+100_00, newestCounters(t, w.m)[totalRecords], path)
			require.Equal(t, []string{"counts/1.1", "counts/2.1", "counts/3.2", "counts/3.3"}, list(t, w.m, "counts/"), path)
		}
	}
}

// TestLostCounts: damage of what an epoch counted, and its loss, refuse the start,
// and are accepted by option alone.
func TestLostCounts(t *testing.T) {
	const name = "counts/3.2"
	for kind := range roots {
		w := out(t, kind, 2, "commits/3", nil)
		s := w.m.open("x", nil)
		whole, err := s.Get(t.Context(), name)
		require.NoError(t, err)
		other, err := s.Get(t.Context(), "counts/2.1")
		require.NoError(t, err)
		of := func(change func(d *Counts)) []byte {
			d, err := decodeCounts(whole, 3, 2)
			require.NoError(t, err)
			change(d)
			b, err := EncodeDocument(d)
			require.NoError(t, err)
			return b
		}
		for what, b := range map[string][]byte{
			"is gone":                 nil,
			"less than a checksum":    {},
			"cut off":                 whole[:len(whole)-1],
			"checksum differs":        append([]byte{'['}, whole[1:]...),
			"its number is 2":         other,
			"its term is 1":           of(func(d *Counts) { d.Term = 1 }),
			"it is of no run":         of(func(d *Counts) { d.Run = "" }),
			"what no program writes":  of(func(d *Counts) { d.Run = "" }),
			"the members cannot read": seal(`{"format":1,"epoch":3,"term":2,"run":"r","counters":{"a":"b"}}`),
		} {
			require.NoError(t, s.Delete(t.Context(), name))
			if b != nil {
				putBytes(t, s, name, b)
			}
			err := w.job(nil).run(t.Context(), 3)
			require.ErrorIs(t, err, ErrCorrupt, what)
			require.ErrorContains(t, err, "checkpoint file counts/3.2 (number 3) is damaged: ")
			if !strings.HasPrefix(what, "the members") {
				require.ErrorContains(t, err, what)
			}
			require.ErrorContains(t, err, "or see `statemill verify`; if there is no copy, accept once that counters lack epoch 3 (WithAcceptDifferentRedo)")
			require.NotContains(t, list(t, w.m, "commits/"), "commits/3")
		}
		// A newer format is no damage.
		require.NoError(t, s.Delete(t.Context(), name))
		putBytes(t, s, name, seal(`{"format":2,"epoch":3,"other":{}}`))
		j := w.job(nil)
		j.cfg.AcceptRedo = true
		require.ErrorIs(t, j.run(t.Context(), 3), ErrFormat)

		// With the document back, all counts; that it is lost is accepted by option.
		clone := &world{m: w.m.crash(0, 0), b: w.b.clone()}
		require.NoError(t, s.Delete(t.Context(), name))
		putBytes(t, s, name, whole)
		require.NoError(t, runJob(t.Context(), w.job(nil), 4))
		require.EqualValues(t, 40, newestCounters(t, w.m)[totalRecords])

		w = clone
		require.NoError(t, w.m.open("x", nil).Delete(t.Context(), name))
		j = w.job(nil)
		j.cfg.AcceptRedo = true
		told := watch(j)
		require.NoError(t, runJob(t.Context(), j, 4))
		require.Contains(t, *told, "what counters had added in epoch 3 is lost, and that was accepted")
		require.EqualValues(t, 30, newestCounters(t, w.m)[totalRecords], "it lacks epoch 3")
	}
}

// TestCountsOfAnOwnerThatCannotBeRead: whether there must be a document, the owner
// file tells. If that is damaged or gone, the document speaks for itself.
func TestCountsOfAnOwnerThatCannotBeRead(t *testing.T) {
	for _, spoilt := range [][]byte{nil, []byte("no owner")} {
		for _, there := range []bool{true, false} {
			w := out(t, "objects", 2, "commits/3", nil)
			s := w.m.open("x", nil)
			require.NoError(t, s.Delete(t.Context(), "owner/2"))
			if spoilt != nil {
				putBytes(t, s, "owner/2", spoilt)
			}
			if !there {
				require.NoError(t, s.Delete(t.Context(), "counts/3.2"))
			}
			err := runJob(t.Context(), w.job(nil), 3)
			if !there {
				require.ErrorIs(t, err, ErrCorrupt)
				require.ErrorContains(t, err, "it is not there, and owner/2, which says whether it must be, cannot be read")
				continue
			}
			require.NoError(t, err)
			require.EqualValues(t, 30, newestCounters(t, w.m)[totalRecords])
		}
	}
}

// TestEpochOfAProgramWithoutCounts: what a run that wrote no such document left, as
// all did before there was one, is adopted as it was then; totals are carried over.
func TestEpochOfAProgramWithoutCounts(t *testing.T) {
	for kind := range roots {
		older := func(j *job) { j.cfg.Counts = false }
		w := out(t, kind, 2, "commits/3", older) // epochs 1 and 2 are another run's
		require.NotContains(t, strings.Join(list(t, w.m, "counts/"), " "), "counts/3")
		b, err := w.m.open("x", nil).Get(t.Context(), "owner/2")
		require.NoError(t, err)
		require.False(t, bytes.Contains(b, []byte("counts")), "its bytes are as they were")
		require.NoError(t, runJob(t.Context(), w.job(nil), 3))
		require.EqualValues(t, 20, newestCounters(t, w.m)[totalRecords])

		// The other way round: what was counted is kept by a program that has no counters.
		w = out(t, kind, 2, "commits/3", nil)
		j := w.job(nil)
		older(j)
		require.NoError(t, runJob(t.Context(), j, 3))
		require.EqualValues(t, 30, newestCounters(t, w.m)[totalRecords])
	}
}

// TestCountsCostNothingElse: without exactly-once sinks, and without counters, there
// is no document more.
func TestCountsCostNothingElse(t *testing.T) {
	m := roots["mem"]()
	require.NoError(t, runJob(t.Context(), newJob(m, nil), 2)) // counts, has no sinks
	require.Empty(t, list(t, m, "counts/"))
	w := &world{m: roots["mem"](), b: &board{}}
	j := w.job(nil)
	j.cfg.Counts = false
	require.NoError(t, runJob(t.Context(), j, 2))
	require.Empty(t, list(t, w.m, "counts/"))
}

// TestCountsAreDurableFirst: the document is there before any sink has the epoch, also
// if its creation gets no answer (P4); if it cannot be made, no sink is written.
func TestCountsAreDurableFirst(t *testing.T) {
	for kind := range roots {
		w := &world{m: roots[kind](), b: &board{}}
		var f vfs.Faults
		seen := 0
		f.Do(vfs.Rule{Path: "sink/a/begin"}, func(vfs.Call) {
			seen++
			require.Contains(t, list(t, w.m, "counts/"), fmt.Sprintf("counts/%d.1", seen))
		})
		f.Fail(vfs.Rule{Path: "counts/2.1", Kinds: vfs.KindLink | vfs.KindPut, After: true})
		j := w.job(&f)
		j.cfg.Options.RetryLimit = 0
		require.NoError(t, runJob(t.Context(), j, 2))
		require.Positive(t, seen)
		require.Positive(t, f.Hits())

		f.Clear()
		f.Fail(vfs.Rule{Path: "counts/3.*", Kinds: vfs.KindLink | vfs.KindPut, Forever: true})
		require.ErrorIs(t, runJob(t.Context(), w.job(&f), 3), vfs.ErrInjected)
		for _, m := range w.b.mem {
			require.EqualValues(t, 2, m.Epoch)
		}
		require.NoError(t, runJob(t.Context(), w.job(nil), 3))
		require.EqualValues(t, 30, newestCounters(t, w.m)[totalRecords])
	}
}

// A name that is taken under the run's own term, by something else, is no success; and
// a commit must say what an adoption would.
func TestCountsMisused(t *testing.T) {
	w := &world{m: roots["objects"](), b: &board{}}
	putBytes(t, w.m.open("x", nil), "counts/1.1", []byte("something else"))
	require.ErrorContains(t, runJob(t.Context(), w.job(nil), 1), "by other content: start again under the next term")

	j := w.job(nil)
	j.step = func(what string, _ uint64) {
		if what == "commit" {
			j.extra = 7
		}
	}
	require.ErrorContains(t, runJob(t.Context(), j, 1), "the counters are others than before the sinks were written")
}

// P5: a document goes when a later epoch is committed, and never before its own is.
func TestCountsAreDeleted(t *testing.T) {
	newest := &Commit{Epoch: 5, Floor: 2}
	for name, want := range map[string]bool{"counts/4.1": true, "counts/1.9": true, "counts/5.1": false, "counts/6.1": false, "counts/4": false, "counts/4.01": false, "counts/4.1.x": false} {
		require.Equal(t, want, Deletable(name, newest, nil), name)
		require.Equal(t, want || name == "counts/5.1", DeletableLeftover(name, "other", "own", newest, nil), name)
		require.False(t, DeletableLeftover(name, "own", "own", newest, nil), name)
	}
	for _, at := range [][2]uint64{{1, 1}, {7, 12}, {1<<64 - 1, 1<<64 - 1}} {
		epoch, term, ok := ParseCountsName(CountsName(at[0], at[1]))
		require.True(t, ok)
		require.Equal(t, at, [2]uint64{epoch, term})
	}
	w := &world{m: roots["mem"](), b: &board{}}
	j := w.job(nil)
	j.keep = 1
	require.NoError(t, runJob(t.Context(), j, 4))
	require.Equal(t, []string{"counts/4.1"}, list(t, w.m, "counts/"))

	// The newest commit is taken out by hand, as it is damaged: the epoch is adopted.
	w = &world{m: roots["mem"](), b: &board{}}
	require.NoError(t, runJob(t.Context(), w.job(nil), 4))
	require.NoError(t, w.m.open("x", nil).Delete(t.Context(), "commits/4"))
	require.NoError(t, runJob(t.Context(), w.job(nil), 5))
	require.EqualValues(t, 50, newestCounters(t, w.m)[totalRecords])
}
