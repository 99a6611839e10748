package exactlyonce

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// want is what the job writes.
const want = `a 1 totals/0 b=1
a 1 totals/1 a=1
a 1 totals/1 a=2
a 1 words/0 a
a 1 words/1 b
a 1 words/1 a
a 2 totals/1 c=1
a 2 words/1 c
a 4 totals/0 b=2
a 4 totals/0 d=1
a 4 totals/1 c=2
a 4 totals/1 a=3
a 4 words/0 b
a 4 words/0 c
a 4 words/1 d
a 4 words/1 a
b 1 more/0 b=1
b 1 more/1 a=1
b 1 more/1 a=2
b 2 more/1 c=1
b 4 more/0 b=2
b 4 more/0 d=1
b 4 more/1 c=2
b 4 more/1 a=3
k 1 topic/0 b=1
k 1 topic/1 a=1
k 1 topic/1 a=2
k 2 topic/1 c=1
k 4 topic/0 b=2
k 4 topic/0 d=1
k 4 topic/1 a=3
k 4 topic/1 c=2`

// wantQueue is what the job writes to a real Kafka topic.
const wantQueue = `
q 1 queue a=1
q 1 queue a=2
q 1 queue b=1
q 2 queue c=1
q 4 queue a=3
q 4 queue b=2
q 4 queue c=2
q 4 queue d=1`

// wanted is the part of it that a job with some of the sinks writes.
func wanted(kinds string) string {
	var list []string
	for _, line := range strings.Split(want+wantQueue, "\n") {
		if strings.Contains(kinds, line[:1]) {
			list = append(list, line)
		}
	}
	return strings.Join(list, "\n")
}

// R1: sinks compute nothing again, however often they read their rows.
func TestSinksRunFunctionsOnce(t *testing.T) {
	for _, kinds := range []string{"b", "a", "k", "abk"} {
		w := newWorld(t, kinds, true)
		w.calls = map[string]int{}
		require.NoError(t, w.life(nil).run())
		require.Equal(t, wanted(kinds), w.sees())
		for call, n := range w.calls {
			require.Equal(t, 1, n, "sinks %s: the job's function ran %d times for %s", kinds, n, call)
		}
	}
}

// stopped says that a run has ended as one that was overtaken must, or at its end.
func stopped(err error) bool {
	return err == nil || errors.Is(err, checkpoint.ErrNotOwner) || errors.Is(err, sink.ErrNotOwner)
}

// The machine loses power before every call to the disk or the Kafka, and after it.
func TestCrashAtEveryCall(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	calls := 0
	for at := 1; ; at += step {
		w := newWorld(t, "abk", true)
		in := &vfs.Faults{}
		in.Fail(vfs.Rule{K: at, After: at%3 == 0, Dead: true})
		err := w.life(in).run()
		if in.Hits() == 0 {
			require.NoError(t, err)
			break
		}
		require.Error(t, err, "call %d", at)
		calls++
		w.crash(uint64(at), at%2*50)
		require.NoError(t, w.life(nil).run(), "call %d", at)
		require.Equal(t, want, w.sees(), "call %d", at)
		// A third life finds nothing to do but empty epochs.
		w.later()
		require.NoError(t, w.life(nil).run())
		require.Equal(t, want, w.sees(), "call %d", at)
	}
	require.Greater(t, calls, 20)
	t.Log(calls, "crashes")
}

// Two crashes: the second while the first is being mended.
func TestCrashWhileRecovering(t *testing.T) {
	for first := 150; first < 1000; first += 61 {
		for second := 1; second < 400; second += 23 {
			w := newWorld(t, "abk", true)
			for life, at := range []int{first, second} {
				in := &vfs.Faults{}
				in.Fail(vfs.Rule{K: at, After: at%3 == 0, Dead: true})
				_ = w.life(in).run()
				w.crash(uint64(at), life*50)
			}
			what := fmt.Sprintf("calls %d and %d", first, second)
			require.NoError(t, w.life(nil).run(), what)
			require.Equal(t, want, w.sees(), what)
		}
	}
}

// zombies runs a job whose older run sleeps before every call to an object store or
// the Kafka while a newer one does everything.
func zombies(t *testing.T, kinds string, step int, tag func(life int) string, check func(w *world, what string, newer error)) {
	if testing.Short() {
		step *= 5
	}
	calls := 0
	for at := 1; ; at += step {
		w := newWorld(t, kinds, false)
		w.tag = tag
		in := &vfs.Faults{}
		z := in.Freeze(vfs.Rule{K: at})
		old := make(chan error, 1)
		l := w.life(in)
		go func() { old <- l.run() }()
		select {
		case <-z.Reached():
		case err := <-old:
			require.NoError(t, err)
			t.Log(calls, "zombies")
			return
		}
		calls++
		w.later()
		what := fmt.Sprintf("call %d", at)
		newer := w.life(nil).run()
		check(w, what, newer)
		z.Thaw()
		err := <-old
		require.True(t, stopped(err), "%s: the older run ends with %v", what, err)
		check(w, what+", after the older run woke up", newer)
		if newer != nil {
			continue
		}
		w.later()
		require.NoError(t, w.life(nil).run())
		check(w, what+", after a third run", nil)
	}
}

func TestZombieAtEveryCall(t *testing.T) {
	zombies(t, "abk", 1, nil, func(w *world, what string, newer error) {
		require.NoError(t, newer, what)
		require.Equal(t, want, w.sees(), what)
	})
}

// The same with a function that comes out another way each time: never do two sinks
// show two attempts of an epoch that was not refused.
func TestZombieWithOtherOutput(t *testing.T) {
	zombies(t, "abk", 1, byLife, oneAttempt(t))
}

// byLife tells lives apart in what they write.
func byLife(life int) string { return fmt.Sprintf(" life %d", life) }

// oneAttempt sees that an epoch that was not refused is there once, of one attempt.
func oneAttempt(t *testing.T) func(w *world, what string, newer error) {
	return func(w *world, what string, newer error) {
		if newer != nil {
			require.ErrorIs(t, newer, checkpoint.ErrRedoDiffers, what)
			return
		}
		require.NoError(t, w.agree(), what)
		require.Equal(t, sorted(wanted(w.kinds)), sorted(strings.NewReplacer(" life 1", "", " life 2", "").Replace(w.sees())), what)
	}
}

// A function that comes out another way each time: an epoch that some sinks have is
// refused, unless the option accepts what they have; one that all have, or none, is
// finished.
func TestDifferentRedo(t *testing.T) { differentRedo(t, "abk", 1) }

func differentRedo(t *testing.T, kinds string, step int) {
	want := wanted(kinds)
	for _, accept := range []bool{false, true} {
		differs, finished := 0, 0
		for at := 1; ; at += step {
			w := newWorld(t, kinds, false)
			w.tag = byLife
			in := &vfs.Faults{}
			in.Fail(vfs.Rule{K: at, After: at%2 == 0, Dead: true})
			if w.life(in).run() == nil {
				break
			}
			w.crash(0, 0)
			what := fmt.Sprintf("accept %v, call %d", accept, at)
			var opts []dstream.ContextOption
			if accept {
				opts = append(opts, dstream.WithAcceptDifferentRedo())
			}
			l := w.life(nil, opts...)
			err := l.run()
			if errors.Is(err, checkpoint.ErrRedoDiffers) {
				require.False(t, accept, what)
				differs++
				// The old program finishes it.
				w.later()
				w.tag = func(life int) string { return " life 1" }
				require.NoError(t, w.life(nil).run(), what)
				require.Equal(t, sorted(want), sorted(strings.ReplaceAll(w.sees(), " life 1", "")), what)
				continue
			}
			require.NoError(t, err, what)
			if strings.Contains(strings.Join(l.note, "\n"), "came out another way") {
				differs++
				require.Equal(t, sorted(want), sorted(strings.NewReplacer(" life 1", "", " life 2", "").Replace(w.sees())), what)
				continue
			}
			finished++
			// Every sink shows the same attempt of an epoch.
			require.Equal(t, sorted(want), sorted(strings.NewReplacer(" life 1", "", " life 2", "").Replace(w.sees())), what)
			require.NoError(t, w.agree(), what)
		}
		require.Positive(t, differs, "accept %v", accept)
		require.Positive(t, finished, "accept %v", accept)
		t.Log("accept", accept, "differs", differs, "finished", finished)
	}
}
