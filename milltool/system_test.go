package milltool

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

func TestSystem(t *testing.T) {
	env := System()
	require.NotEqual(t, env.ID(), env.ID())
	require.Positive(t, env.Now())
	require.True(t, env.Alive(os.Getpid()))
	gone := exec.Command(os.Args[0], "-test.list=^$")
	require.NoError(t, gone.Run())
	require.False(t, env.Alive(gone.Process.Pid))
	require.NoError(t, env.Wait(context.Background(), time.Nanosecond))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, env.Wait(ctx, time.Hour), context.Canceled)
}

// TestOnDisk: the tool on a folder of the machine, with a lock that a process holds. // report 14
func TestOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ckpt")
	store, err := vfs.NewDir(vfs.Disk(), dir, "maker")
	require.NoError(t, err)
	source := stopped(t)
	for name, content := range objects(t, source) {
		if name != checkpoint.LockName {
			(&maker{t: t, store: store}).put(name, []byte(content))
		}
	}
	env := Env{FS: vfs.Disk()}
	for _, line := range []string{"versions", "inspect", "verify"} {
		out, errs, code := runEnv(t, env, line, dir)
		require.Equal(t, ExitOK, code, errs)
		require.NotEmpty(t, out)
	}
	_, err = os.Stat(filepath.Join(dir, "lock"))
	require.ErrorIs(t, err, os.ErrNotExist, "a reading command touched the lock")
	lock, err := store.Lock(context.Background(), checkpoint.LockName, "host mill pid 42 run run-2 since 2023-11-14T22:13:59.5Z")
	require.NoError(t, err)
	_, errs, code := runEnv(t, env, "rescale", dir, "counts=4")
	require.Equal(t, ExitFailure, code)
	require.Contains(t, errs, "run run-2, process 42 on mill")
	out, _, _ := runEnv(t, env, "inspect", dir)
	require.Contains(t, out, "lock      held")
	require.NoError(t, lock.Close())
	out, errs, code = runEnv(t, env, "rescale", dir, "counts=4")
	require.Equal(t, ExitOK, code, errs)
	require.Contains(t, out, "from 3 to 4 partitions")
	_, errs, code = runEnv(t, env, "fork", dir, dir+"-new")
	require.Equal(t, ExitOK, code, errs)
	out, errs, code = runEnv(t, env, "verify", dir+"-new")
	require.Equal(t, ExitOK, code, "%s%s", out, errs)
	for _, c := range []struct{ dir, says string }{
		{filepath.Join(dir, "nowhere"), "there is no such folder"},
		{filepath.Join(dir, "commits", "6"), "it is a file"},
		{filepath.Join(dir, "commits"), "it has neither commits/ nor owner/"},
		{t.TempDir(), "it has neither commits/ nor owner/"},
	} {
		for _, args := range []string{"versions D", "inspect D", "get D counts a", "dump D counts", "diff D counts 1 2", "history D counts a", "verify D", "repair D",
			"rescale D counts=2", "fork D " + dir + "-other", "replay D 3"} {
			env.Replay = noReplay
			_, errs, code = runEnv(t, env, strings.Fields(strings.Replace(args, " D", " "+c.dir, 1))...)
			require.Equal(t, ExitFailure, code, args)
			require.Contains(t, errs, "no checkpoint root in "+c.dir+": "+c.says, args)
			require.Contains(t, errs, "give the folder that the job's WithCheckpoint names", args)
		}
	}
	for newDir, says := range map[string]string{
		dir:                                "is not empty",
		filepath.Join(dir, "below"):        "lies in " + dir,
		filepath.Join(dir, "commits", "6"): "is a file: give a new folder",
	} {
		_, errs, code = runEnv(t, env, "fork", dir, newDir)
		require.Equal(t, ExitFailure, code, errs)
		require.Contains(t, errs, says)
	}
	for _, args := range [][]string{{"versions", ""}, {"fork", "", "x"}, {"fork", dir, ""}} {
		_, errs, code = runEnv(t, env, args...)
		require.Equal(t, ExitUsage, code)
		require.Contains(t, errs, "DIR is empty")
	}
	_, err = os.Stat(dir + "-other")
	require.ErrorIs(t, err, os.ErrNotExist, "a refused fork has made its folder")
}

// TestLockOfTheDead: a holder of this machine that is gone holds nothing.
func TestLockOfTheDead(t *testing.T) {
	for _, c := range []struct {
		host  string
		alive bool
		says  string
	}{
		{"mill", true, "lock      held"},
		{"mill", false, "lock      free"},
		{"desk", false, "lock      held"}, // on another machine nobody can tell
	} {
		s := whole(t)
		env := Env{FS: vfs.NewMem(vfs.WithOwner(c.host, 1)), Open: func(string) (vfs.Store, error) { return s, nil },
			Alive: func(pid int) bool { require.Equal(t, 42, pid); return c.alive }}
		out, errs, code := runEnv(t, env, "inspect", "ckpt")
		require.Equal(t, ExitOK, code, errs)
		require.Contains(t, out, c.says)
	}
}

// TestMissingFile: a file that is gone for good ends the tries with an error that helps.
func TestMissingFile(t *testing.T) {
	s := with(t, whole(t), "state/1/r1/1/6.2.delta", nil)
	_, errs, code := run(t, s, "get", "ckpt", "counts", "dog")
	require.Equal(t, ExitFailure, code)
	require.Contains(t, errs, "state/1/r1/1/6.2.delta")
	require.Contains(t, errs, "`verify` says which")
}

// TestStoreThatFails: an error of the store is an error of every command, and no finding about the root.
func TestStoreThatFails(t *testing.T) {
	broken := errors.New("the cable is out")
	for _, args := range everything() {
		if args[0] == "replay" {
			continue
		}
		for k := 1; ; k += callStep() {
			var faults vfs.Faults
			faults.Fail(vfs.Rule{K: k, Forever: true, Err: broken})
			s := vfs.WithStoreFaults(whole(t), &faults)
			other := vfs.NewObjects()
			out, errs, code := runEnv(t, Env{Open: func(dir string) (vfs.Store, error) {
				if dir == "new" {
					return other, nil
				}
				return s, nil
			}}, args...)
			if faults.Hits() == 0 {
				break
			}
			require.Equal(t, ExitFailure, code, "%v, call %d: %s", args, k, out)
			require.Contains(t, errs, "the cable is out", "%v, call %d: %s", args, k, out)
			require.Empty(t, out, "%v, call %d", args, k)
		}
	}
}

// TestCancelled: the end of the context ends every command, as an error.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := whole(t)
	for _, args := range everything() {
		env := fixedEnvOf(s)
		env.Args, env.Stdout, env.Stderr = args, io.Discard, io.Discard
		env.FS, env.ID = vfs.NewMem(), func() string { return "ID" }
		env.Now, env.Wait, env.Replay = func() int64 { return 0 }, func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, noReplay
		require.Equal(t, ExitFailure, Run(ctx, env), "%v", args)
	}
}

// TestOutputThatFails: what cannot be printed is an error.
func TestOutputThatFails(t *testing.T) {
	env := fixedEnvOf(whole(t))
	env.Args, env.Stdout, env.Stderr, env.FS = []string{"versions", "ckpt"}, full{}, io.Discard, vfs.NewMem()
	env.ID = func() string { return "ID" }
	require.Equal(t, ExitFailure, Run(context.Background(), env))
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestForkThroughALink: a link does not lead a fork into the root that it copies.
func TestForkThroughALink(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "wc")
	store, err := vfs.NewDir(vfs.Disk(), dir, "job")
	require.NoError(t, err)
	fixedRoot(t, store)
	if err := os.Symlink(dir, filepath.Join(top, "l")); err != nil {
		t.Skip(err) // a system that lets not everybody make links
	}
	require.NoError(t, os.Symlink(filepath.Join(dir, "state"), filepath.Join(top, "s")))
	before := objects(t, store)
	env := Env{FS: vfs.Disk(), Resolve: System().Resolve}
	for _, args := range [][2]string{{dir, "l/inner"}, {dir, "l/a/b"}, {dir, "s/inner"}, {dir, "s/9"}, {filepath.Join(top, "l"), "wc/inner"}, {dir, "wc/inner"}} {
		_, errs, code := runEnv(t, env, "fork", args[0], filepath.Join(top, args[1]))
		require.Equal(t, ExitFailure, code, args)
		require.Contains(t, errs, "where only the files of that root belong", args)
	}
	require.Equal(t, before, objects(t, store))
	_, errs, code := runEnv(t, env, "fork", filepath.Join(top, "l"), filepath.Join(top, "new"))
	require.Equal(t, ExitOK, code, errs)
}
