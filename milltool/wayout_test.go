package milltool

import (
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
