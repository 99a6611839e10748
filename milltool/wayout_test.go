package milltool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// TestMissingCommit: what belongs to a version whose commit is gone is said to be so, and not to be old or left behind.
func TestMissingCommit(t *testing.T) {
	out, _, code := run(t, with(t, whole(t), "commits/3", nil), "verify", "ckpt")
	require.Equal(t, ExitFailure, code)
	require.Regexp(t, `(?m)^damage +commits/3 +missing`, out)
	for _, name := range []string{"offsets/3", "state/1/1/3.1.delta"} {
		require.Regexp(t, `(?m)^note +`+name+` +not compared: the commit of its epoch is missing$`, out)
	}
}

// TestDamagedCommit: the same of one that cannot be read, which may name any of them.
func TestDamagedCommit(t *testing.T) {
	out, _, code := run(t, with(t, whole(t), "commits/3", []byte("damaged")), "verify", "ckpt")
	require.Equal(t, ExitFailure, code)
	for _, name := range []string{"offsets/3", "state/1/1/3.1.delta"} {
		require.Regexp(t, `(?m)^note +`+name+` +not compared: the commit of its epoch cannot be read$`, out)
	}
	require.Regexp(t, `(?m)^note +metadata/3 +no commit that can be read names it$`, out)
}

// TestManyNotes: files of one folder of which the same is to be said are one line, if they are many.
func TestManyNotes(t *testing.T) {
	s := vfs.NewObjects()
	l := newLiveRoot(t, s)
	for range 30 {
		l.next()
	}
	for n := range l.floor - 1 {
		l.put(fmt.Sprintf("state/1/0/%d.9.delta", n+1), nil)
		l.put(fmt.Sprintf("state/1/1/%d.9.delta", l.floor+n%3), nil)
		if n == 2 {
			break
		}
	}
	out, _, code := run(t, s, "verify", "ckpt")
	require.Equal(t, ExitOK, code, out)
	require.Equal(t, 7, strings.Count(out, "\n"), out)
	for n := l.floor; n > 4; n-- {
		l.put(fmt.Sprintf("state/1/0/%d.9.delta", n-1), nil)
	}
	l.put("state/1/0/strange", nil)
	out, _, code = run(t, s, "verify", "ckpt")
	require.Equal(t, ExitOK, code, out)
	require.Equal(t, 6, strings.Count(out, "\n"), out)
	require.Regexp(t, fmt.Sprintf(`(?m)^note +state/1/0/ +%d files of versions 1 to %d: below the oldest version that is kept$`, l.floor-1, l.floor-1), out)
	require.Regexp(t, `(?m)^note +state/1/0/strange +no file of a checkpoint root$`, out)
}

// TestOddFolders: a folder in the place of a commit would end the next run, and no list of files shows it.
func TestOddFolders(t *testing.T) {
	mem := vfs.NewMem()
	job, err := vfs.NewDir(mem, "ckpt", "job")
	require.NoError(t, err)
	fixedRoot(t, job)
	env := Env{FS: mem}
	before := must(t, env, "verify ckpt")
	require.NoError(t, mem.MkdirAll("ckpt/strange/deep"))
	require.NoError(t, mem.MkdirAll("ckpt/commits/1")) // below F
	out := must(t, env, "verify ckpt")
	require.Equal(t, strings.Count(before, "\n")+3, strings.Count(out, "\n"), out)
	for _, name := range []string{"strange/", "strange/deep/", "commits/1/"} {
		require.Regexp(t, `(?m)^note +`+name+` +no folder of a checkpoint root$`, out)
	}
	for _, name := range []string{"commits/7", "offsets/8", "owner/9", "state/1/r1/0/7.2.delta"} {
		require.NoError(t, mem.MkdirAll("ckpt/"+name))
		out, _, code := runEnv(t, env, "verify", "ckpt")
		require.Equal(t, ExitFailure, code, name)
		require.Regexp(t, `(?m)^damage +`+name+` +a folder with the name of a file`, out)
		require.NoError(t, mem.Remove("ckpt/"+name))
	}
}

// TestForkBelowDamage: what docs/recovery.md tells those to do who have no copy of a damaged file.
func TestForkBelowDamage(t *testing.T) {
	for _, name := range []string{"state/1/r1/1/6.2.delta", "offsets/6"} {
		s, other := with(t, whole(t), name, []byte("damaged")), vfs.NewObjects()
		env := func() Env {
			return Env{Open: func(dir string) (vfs.Store, error) {
				if dir == "new" {
					return other, nil
				}
				return s, nil
			}}
		}
		_, errs, code := runEnv(t, env(), "fork", "ckpt", "new", "-version", "5")
		require.Equal(t, ExitOK, code, "%s: %s", name, errs)
		out, errs, code := runEnv(t, env(), "verify", "new")
		require.Equal(t, ExitOK, code, "%s: %s%s", name, out, errs)
		require.Contains(t, out, "versions 2 to 5")
	}
}
