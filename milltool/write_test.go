package milltool

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/vfs"
)

// stopped is the fixed root without its pending epoch.
func stopped(t testing.TB) *vfs.Objects {
	return with(t, whole(t), checkpoint.PlanName(7), nil)
}

// openAsJob starts a run on a root as the job of the fixed root would.
func openAsJob(t testing.TB, s vfs.Store) (*checkpoint.Session, error) {
	meta, err := checkpoint.OpenRoot(whole(t)).Metadata(context.Background(), 2)
	require.NoError(t, err)
	cfg := checkpoint.Config{Store: s, Run: "job", Host: "mill", PID: 1, Interval: meta.Interval, Zero: zero,
		Now: func() int64 { return zero }, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	for _, op := range meta.Operators {
		cfg.Operators = append(cfg.Operators, checkpoint.JobOperator{Operator: op})
	}
	return checkpoint.Open(context.Background(), cfg)
}

// dumps are the keys of all operators, without their partitions.
func dumps(t testing.TB, s vfs.Store) (lines []string) {
	for _, op := range []string{"counts", "user sessions"} {
		out, errs, code := run(t, s, "dump", "ckpt", op)
		require.Equal(t, ExitOK, code, errs)
		lines = append(lines, withoutPartitions(out)...)
	}
	return lines
}

// callStep is the step from call to call: the race detector takes ten times as long.
func callStep() int {
	if invariants.Enabled {
		return 5
	}
	return 1
}

// TestForkBrokenOffAnywhere: wherever a fork breaks off, no job starts on the new root as if it were whole, or fresh.
func TestForkBrokenOffAnywhere(t *testing.T) {
	for k := 1; ; k += callStep() {
		from, to := whole(t), vfs.NewObjects()
		var faults vfs.Faults
		faults.Fail(vfs.Rule{K: k, Dead: true})
		env := Env{Open: func(dir string) (vfs.Store, error) {
			if dir == "new" {
				return vfs.WithStoreFaults(to, &faults), nil
			}
			return from, nil
		}}
		_, errs, code := runEnv(t, env, "fork", "ckpt", "new", "-version", "5")
		session, err := openAsJob(t, to)
		if err == nil {
			require.NoError(t, session.Close())
		}
		if faults.Hits() == 0 {
			require.Equal(t, ExitOK, code, errs)
			require.NoError(t, err)
			require.Equal(t, uint64(5), session.Start().Commit.Epoch)
			require.Greater(t, k, 60)
			break
		}
		require.Equal(t, ExitFailure, code, "call %d", k)
		require.NotEmpty(t, errs)
		if err == nil && !session.Start().Fresh { // it broke off in the check at the end
			out, _, code := run(t, to, "verify", "ckpt")
			require.Equal(t, ExitOK, code, "call %d: a job starts on half a root\n%s", k, out)
			continue
		}
		if err == nil {
			list := objects(t, to) // the job's own first files, and nothing of the fork
			require.NotContains(t, strings.Join(keysOf(list), " "), "state/", "call %d: a fresh start on half a fork", k)
		}
	}
}

func keysOf(m map[string]string) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

// TestRescaleBrokenOffAnywhere: wherever it breaks off, all keys are there, and the next try, or the next run of a job that
// rescales, finishes it. // report 11
func TestRescaleBrokenOffAnywhere(t *testing.T) {
	want := dumps(t, stopped(t))
	for k := 1; ; k += callStep() {
		s := stopped(t)
		var faults vfs.Faults
		faults.Fail(vfs.Rule{K: k, Dead: true, After: k%2 == 0})
		_, _, code := run(t, vfs.WithStoreFaults(s, &faults), "rescale", "ckpt", "counts=5", "-takeover")
		require.Equal(t, want, dumps(t, s), "call %d", k)
		if faults.Hits() == 0 {
			require.Equal(t, ExitOK, code)
			require.Greater(t, k, 40)
			return
		}
		_, errs, code := run(t, s, "rescale", "ckpt", "counts=5", "-takeover")
		require.Equal(t, ExitOK, code, "call %d: %s", k, errs)
		require.Equal(t, want, dumps(t, s), "call %d", k)
		out, _, code := run(t, s, "verify", "ckpt")
		require.Equal(t, ExitOK, code, "call %d: %s", k, out)
		out, _, _ = run(t, s, "inspect", "ckpt")
		require.Regexp(t, `(?m)^counts .* 5 by hash `, out)
	}
}

// TestRepairBrokenOffAnywhere: a repair never makes it worse, and the next one finishes it. // report 12
func TestRepairBrokenOffAnywhere(t *testing.T) {
	want := dumps(t, stopped(t))
	broken := func() *vfs.Objects {
		s := stopped(t)
		for part := range 3 {
			name := fmt.Sprintf("state/1/r1/%d/5.2.snapshot", part)
			b := []byte(objects(t, s)[name])
			b[len(b)/2] ^= 1
			s = with(t, s, name, b)
		}
		return s
	}
	out, _, code := run(t, broken(), "repair", "ckpt")
	require.Equal(t, ExitFailure, code)
	require.Equal(t, 3, strings.Count(out, "would write"))
	for k := 1; ; k += callStep() {
		s := broken()
		var faults vfs.Faults
		faults.Fail(vfs.Rule{K: k, Dead: true, After: k%2 == 0})
		_, _, code := run(t, vfs.WithStoreFaults(s, &faults), "repair", "ckpt", "-write", "-takeover")
		require.Equal(t, want, dumps(t, s), "call %d", k)
		if faults.Hits() == 0 {
			require.Equal(t, ExitOK, code)
			require.Greater(t, k, 40)
			break
		}
		out, errs, code := run(t, s, "repair", "ckpt", "-write", "-takeover")
		require.Equal(t, ExitOK, code, "call %d: %s%s", k, out, errs)
		require.Equal(t, want, dumps(t, s), "call %d", k)
		// Without the old snapshots and without what they were made from, the new ones are all that is needed.
		out, _, code = run(t, s, "repair", "ckpt")
		require.Equal(t, ExitOK, code, out)
		require.NotContains(t, out, "would write")
		require.NotContains(t, out, "cannot be repaired")
	}
}

// TestNothingIsReplaced: what commands that write leave as it was is all that was there.
func TestNothingIsReplaced(t *testing.T) {
	for _, args := range [][]string{
		{"rescale", "ckpt", "counts=5", "-takeover"}, {"repair", "ckpt", "-write", "-takeover"}, {"fork", "ckpt", "new"},
	} {
		s := with(t, stopped(t), "state/1/r1/2/5.2.snapshot", []byte("broken"))
		before := objects(t, s)
		out, errs, _ := runEnv(t, fixedEnvOf(s), args...)
		after := objects(t, s)
		for name, content := range before {
			require.Equal(t, content, after[name], "%v: %s%s", args, out, errs)
		}
		require.Equal(t, args[0] == "fork", len(before) == len(after), "%v", args)
	}
}

// TestPendingChangeIsFinished: a change that another run planned and did not finish comes first.
func TestPendingChangeIsFinished(t *testing.T) {
	s := stopped(t)
	var faults vfs.Faults
	faults.Fail(vfs.Rule{Kinds: vfs.KindPut, Path: "commits/7", Dead: true})
	_, _, code := run(t, vfs.WithStoreFaults(s, &faults), "rescale", "ckpt", "counts=5", "-takeover")
	require.Equal(t, ExitFailure, code)
	out, _, _ := run(t, s, "inspect", "ckpt")
	require.Contains(t, out, "pending   epoch 7 (change)")
	out, errs, code := run(t, s, "rescale", "ckpt", "user sessions=3", "-takeover")
	require.Equal(t, ExitOK, code, errs)
	require.Contains(t, out, "operator \"user sessions\": from 1 to 3 partitions, 1 key, as version 8")
	out, _, _ = run(t, s, "versions", "ckpt")
	require.Regexp(t, `(?m)^8 +change `, out)
}
