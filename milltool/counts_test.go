package milltool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

// withCounts puts what runs counted beside a root whose newest version is 6.
func withCounts(t *testing.T, base *vfs.Objects, places ...[2]uint64) *vfs.Objects {
	s := base
	for _, at := range places {
		b, err := checkpoint.EncodeDocument(&checkpoint.Counts{Epoch: at[0], Term: at[1], Run: "r", Counters: map[string]int64{"total.a": 1}})
		require.NoError(t, err)
		s = with(t, s, checkpoint.CountsName(at[0], at[1]), b)
	}
	return s
}

// TestCountsAreKnown: what a job counted before its sinks had the epoch is a part of a root: of the newest epoch it is not worth
// a word, of the next one it is needed, and of others nobody misses it.
func TestCountsAreKnown(t *testing.T) {
	base := whole(t)
	clean, _, code := run(t, base, "verify", "ckpt")
	require.Equal(t, ExitOK, code)
	s := withCounts(t, base, [2]uint64{6, 2})
	out, _, code := run(t, s, "verify", "ckpt")
	require.Equal(t, ExitOK, code, out)
	require.Equal(t, strings.Count(clean, "\n"), strings.Count(out, "\n"), out)
	require.NotContains(t, out, "counts/6")
	out, _, _ = run(t, s, "inspect", "ckpt")
	require.Regexp(t, `(?m)^counts +1 +`, out)

	s = withCounts(t, s, [2]uint64{7, 1}, [2]uint64{7, 2})
	out, _, code = run(t, s, "verify", "ckpt")
	require.Equal(t, ExitOK, code, out)
	for term := range 2 {
		require.Regexp(t, fmt.Sprintf(`(?m)^note +counts/7.%d +what was counted in an epoch that is under way or pending$`, term+1), out)
	}
	// As nobody wants them, those before are told together.
	s = withCounts(t, s, [2]uint64{1, 1}, [2]uint64{2, 1}, [2]uint64{3, 1}, [2]uint64{5, 2})
	out, _, code = run(t, s, "verify", "ckpt")
	require.Equal(t, ExitOK, code, out)
	require.Regexp(t, `(?m)^note +counts/ +4 files of versions 1 to 5: what was counted in an epoch; the commit of a later one stands, so nobody needs it$`, out)

	// Damage of what the next start may need is damage.
	for name, level := range map[string]string{"counts/7.2": "damage", "counts/6.2": "damage", "counts/3.1": "note"} {
		out, _, code = run(t, with(t, s, name, []byte("no document")), "verify", "ckpt")
		require.Equal(t, map[string]int{"damage": ExitFailure, "note": ExitOK}[level], code, out)
		require.Regexp(t, `(?m)^`+level+` +`+strings.ReplaceAll(name, ".", `\.`)+` +(checkpoint file .* is damaged|damaged, and no longer needed)`, out)
	}
	for _, name := range []string{"counts/7", "counts/7.02", "counts/x.1"} {
		out, _, _ = run(t, with(t, base, name, []byte("x")), "verify", "ckpt")
		require.Regexp(t, `(?m)^note +`+strings.ReplaceAll(name, ".", `\.`)+` +no file of a checkpoint root$`, out)
	}

	// A fork begins with sinks of its own, so it needs none.
	other := vfs.NewObjects()
	_, errs, code := runEnv(t, Env{Open: func(dir string) (vfs.Store, error) {
		if dir == "new" {
			return other, nil
		}
		return s, nil
	}}, "fork", "ckpt", "new")
	require.Equal(t, ExitOK, code, errs)
	list, err := other.List(t.Context(), "counts/")
	require.NoError(t, err)
	require.Empty(t, list)
}
