package milltool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// noReplay stands in tests that need the command and not its work.
func noReplay(context.Context, Replay) error { return errors.New("no job") }

const poem = "the cat sat on the mat and the dog sat on the cat while the rat ate the hat of the cat and ran from the dog to the mat"

// wordJob counts the words of a file, one a line, step by step.
func wordJob(mem vfs.FS, step int, printed *int) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		words := dstream.From(ssc, "words", source.TextFiles(mem, "poem.txt"))
		ones := dstream.MapPair(words, func(w string) (string, int) { return w, step })
		counts := dstream.MapWithState(ones, dstream.Function(
			func(w string, n dstream.Option[int], s *dstream.State[int]) dstream.Pair[string, int] {
				s.Update(s.OrElse(0) + n.OrElse(0))
				return dstream.KV(w, s.Get())
			}).Named("counts").NumPartitions(2))
		dstream.Foreach(counts, func(context.Context, dstream.Batch, dstream.Pair[string, int]) error {
			*printed++
			return nil
		}, dstream.Name("totals"))
		return nil
	}
}

// wordRoot is a root that a job has written, with what it has counted.
func wordRoot(t *testing.T) (mem *vfs.Mem, root *vfs.Objects, counts map[string]int) {
	mem, root, counts = vfs.NewMem(), vfs.NewObjects(), map[string]int{}
	words := strings.Fields(poem)
	require.NoError(t, vfs.WriteFile(mem, "poem.txt", []byte(strings.Join(words, "\n")+"\n")))
	for _, w := range words {
		counts[w]++
	}
	printed := 0
	require.NoError(t, dstream.Run(context.Background(), time.Millisecond, wordJob(mem, 1, &printed),
		dstream.WithCheckpointStore(root), dstream.WithMaxRecordsPerBatch(5), dstream.WithStopWhenDone()))
	require.Equal(t, len(words), printed)
	return mem, root, counts
}

// TestRootOfAJob: what the tool shows of a root that a job has written.
func TestRootOfAJob(t *testing.T) {
	_, root, counts := wordRoot(t)
	out, errs, code := run(t, root, "verify", "ckpt")
	require.Equal(t, ExitOK, code, "%s%s", out, errs)
	require.NotContains(t, out, "note ")
	out, errs, code = run(t, root, "dump", "-json", "ckpt", "counts")
	require.Equal(t, ExitOK, code, errs)
	got := map[string]int{}
	for line := range strings.Lines(out) {
		var r struct {
			Key   string
			State int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		got[r.Key] = r.State
	}
	require.Equal(t, counts, got)
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		out, errs, code = run(t, root, "history", "-json", "ckpt", "counts", w)
		require.Equal(t, ExitOK, code, errs)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Contains(t, lines[len(lines)-1], fmt.Sprintf(`"new":%d`, counts[w]))
	}
	for _, args := range [][]string{{"versions", "ckpt"}, {"inspect", "ckpt"}, {"diff", "ckpt", "counts", "1", "4"}} {
		out, errs, code = run(t, root, args...)
		require.Equal(t, ExitOK, code, "%v: %s%s", args, out, errs)
	}

	// Rescaled offline, it has the same keys, states and times. // report 11
	before, _, _ := run(t, root, "dump", "ckpt", "counts")
	for _, n := range []string{"8", "3"} {
		_, errs, code = run(t, root, "rescale", "ckpt", "counts="+n, "-takeover")
		require.Equal(t, ExitOK, code, errs)
		after, _, _ := run(t, root, "dump", "ckpt", "counts")
		require.Equal(t, withoutPartitions(before), withoutPartitions(after))
		out, _, code = run(t, root, "verify", "ckpt")
		require.Equal(t, ExitOK, code, out)
	}
}

// withoutPartitions gives the lines of a dump without their first column, sorted.
func withoutPartitions(dump string) (lines []string) {
	for line := range strings.Lines(dump) {
		f := strings.Fields(line)
		lines = append(lines, strings.Join(f[1:], " "))
	}
	slices.Sort(lines)
	return lines
}

// TestReplay: every epoch comes out as it was committed; with other functions it does not, and the keys are named; nothing is
// written, and no output runs.
func TestReplay(t *testing.T) {
	mem, root, _ := wordRoot(t)
	before := objects(t, root)
	newest := uint64(0)
	for name := range before {
		if n, ok := documentNumber(name); ok && strings.HasPrefix(name, "commits/") {
			newest = max(newest, n)
		}
	}
	require.GreaterOrEqual(t, newest, uint64(5))
	printed := 0
	env := Env{Open: func(string) (vfs.Store, error) { return root, nil }}
	for n := uint64(1); n <= newest; n++ {
		env.Replay = ReplayJob(wordJob(mem, 1, &printed), dstream.WithMaxRecordsPerBatch(5))
		out, errs, code := runEnv(t, env, "replay", "ckpt", number(n), "-limit", "0", "-json")
		require.Equal(t, ExitOK, code, "epoch %d: %s%s", n, out, errs)
		var r replayResult
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		require.True(t, r.Same)
		require.Equal(t, n, r.Version)
		require.Len(t, r.Outputs, 1)
		require.Equal(t, "totals", r.Outputs[0].Name)
		require.Len(t, r.Outputs[0].Rows, r.Outputs[0].Total)
	}
	env.Replay = ReplayJob(wordJob(mem, 10, &printed))
	out, errs, code := runEnv(t, env, "replay", "ckpt", "2", "-limit", "2")
	require.Equal(t, ExitFailure, code, errs)
	require.Contains(t, out, "output totals (Foreach): 5 rows\n")
	require.Contains(t, out, "  and 3 more\n")
	require.Contains(t, out, "operator counts: version 2 came out another way: ")
	require.Regexp(t, `(?m)^~ +"\w+" +\d+ → \d+$`, out)
	require.Zero(t, printed, "an output ran")
	require.Equal(t, before, objects(t, root), "something was written")
}

func TestReplayRefuses(t *testing.T) {
	mem, root, _ := wordRoot(t)
	printed := 0
	env := Env{Open: func(string) (vfs.Store, error) { return root, nil }, Replay: ReplayJob(wordJob(mem, 1, &printed))}
	for args, says := range map[string]string{
		"replay ckpt 99":         "version 99 is not kept",
		"replay ckpt 0":          "version 0 is not kept",
		"replay ckpt x":          "is no version",
		"replay ckpt 1 -limit=x": "invalid value",
	} {
		_, errs, code := runEnv(t, env, strings.Fields(args)...)
		require.NotEqual(t, ExitOK, code, args)
		require.Contains(t, errs, says)
	}
	// A job that fails says why.
	env.Replay = ReplayJob(func(ssc *dstream.StreamingContext) error { return errors.New("no such luck") })
	_, errs, code := runEnv(t, env, "replay", "ckpt", "2")
	require.Equal(t, ExitFailure, code)
	require.Contains(t, errs, "no such luck")
	require.Contains(t, errs, "epoch 2 did not come out")
	// So does one whose input is gone: no file of the root is meant.
	empty, printed := vfs.NewMem(), 0
	env.Replay = ReplayJob(wordJob(empty, 1, &printed), dstream.WithMaxRecordsPerBatch(5))
	_, errs, code = runEnv(t, env, "replay", "ckpt", "2")
	require.Equal(t, ExitFailure, code)
	require.Contains(t, errs, "the input poem.txt is gone")
	require.NotContains(t, errs, "a file that a commit names")
	// A change is nothing that a job computes, and from below F nothing begins.
	fixed := vfs.NewObjects()
	fixedRoot(t, fixed)
	env.Open = func(string) (vfs.Store, error) { return fixed, nil }
	_, errs, _ = runEnv(t, env, "replay", "ckpt", "4")
	require.Contains(t, errs, "epoch 4 is a change")
	_, errs, _ = runEnv(t, env, "replay", "ckpt", "2")
	require.Contains(t, errs, "epoch 2 begins from version 1: version 1 is not kept")
}

// TestOverlay: the store of a replay shows the root as it was, and keeps what is written.
func TestOverlay(t *testing.T) {
	base := vfs.NewObjects()
	fixedRoot(t, base)
	before := objects(t, base)
	commit, err := checkpoint.OpenRoot(base).Commit(context.Background(), 5)
	require.NoError(t, err)
	o, err := newOverlay(base, 6, 2, commit)
	require.NoError(t, err)
	over := objects(t, o)
	require.NotContains(t, over, "commits/6")
	require.NotContains(t, over, "offsets/7")
	require.NotContains(t, over, "lock")
	require.NotContains(t, over, "state/1/r1/1/6.2.delta")
	require.Contains(t, over, "offsets/6")
	require.Contains(t, over, "state/1/r1/1/5.2.delta")
	require.NotEqual(t, before["commits/5"], over["commits/5"])
	shown, err := checkpoint.OpenRoot(o).Newest(context.Background())
	require.NoError(t, err)
	require.Equal(t, uint64(5), shown.Epoch)
	require.Empty(t, shown.Sinks)
	// It keeps the rules of a store.
	mine := &maker{t: t, store: o}
	mine.put("state/1/r1/1/6.3.delta", []byte("x"))
	_, err = base.Stat(context.Background(), "state/1/r1/1/6.3.delta")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, o.PutIfAbsent(context.Background(), "owner/2", nil), fs.ErrExist)
	require.NoError(t, o.Delete(context.Background(), "owner/2"))
	require.NoError(t, o.Delete(context.Background(), "state/1/r1/1/6.3.delta"))
	_, err = o.Lock(context.Background(), "lock", "")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Equal(t, before, objects(t, base))
}
