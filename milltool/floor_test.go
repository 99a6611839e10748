package milltool

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

// TestFloorBelowASnapshot: partitions take their snapshots at different versions, so the oldest versions that are kept may lie
// before the first snapshot of one. That is no damage, and a history begins with what can be read.
func TestFloorBelowASnapshot(t *testing.T) {
	s := vfs.NewObjects()
	m := newMaker(t, s)
	m.start()
	counts := addOp[string, int64](m, "counts", 2, false)
	m.metadata()
	key := map[int]string{}
	for k := 0; len(key) < 2; k++ {
		key[counts.part(fmt.Sprint("k", k))] = fmt.Sprint("k", k)
	}
	for n := range int64(10) {
		if n == 8 {
			m.floor = 4
		}
		counts.put(key[0], n+1)
		counts.put(key[1], n+1)
		m.commit(checkpoint.KindBatch)
		switch n + 1 {
		case 4:
			counts.snapshot(m, 0)
		case 6:
			counts.snapshot(m, 1)
		}
	}
	for name := range objects(t, s) {
		n, ok := documentNumber(name)
		if f, state := checkpoint.ParseStateName(name); state {
			n, ok = f.Version, true
		} else if name[0] != 'c' && name[:2] != "of" {
			continue
		}
		if ok && n < 4 {
			require.NoError(t, s.Delete(t.Context(), name))
		}
	}

	out, errs, code := run(t, s, "verify", "ckpt")
	require.Equal(t, ExitOK, code, "%s%s", out, errs)
	require.Contains(t, out, "note  state/1/1/  versions before 6 cannot be read: its first snapshot is of that one\n")
	for part, first := range []uint64{4, 6} {
		out, errs, code = run(t, s, "history", "-json", "ckpt", "counts", key[part])
		require.Equal(t, ExitOK, code, errs)
		rows := lines[historyRow](t, out)
		require.Equal(t, first, rows[0].Version)
		require.Equal(t, present, rows[0].Change)
		require.Len(t, rows, 10-int(first)+1)
	}
	_, errs, code = run(t, s, "dump", "ckpt", "counts", "-version", "5")
	require.Equal(t, ExitFailure, code)
	require.Contains(t, errs, "in state/1/1/ the first snapshot is of version 6: read that or a newer one")
	out, _, _ = run(t, s, "repair", "ckpt")
	require.Equal(t, "nothing to repair\n", out)
	for version, want := range map[string]int{"": ExitOK, "7": ExitOK, "5": ExitFailure} {
		args := []string{"fork", "ckpt", "new"}
		if version != "" {
			args = append(args, "-version", version)
		}
		other := vfs.NewObjects()
		_, errs, code = runEnv(t, Env{Open: func(dir string) (vfs.Store, error) {
			if dir == "new" {
				return other, nil
			}
			return s, nil
		}}, args...)
		require.Equal(t, want, code, "%s: %s", version, errs)
	}

	// With the snapshot gone it is damage.
	out, _, code = run(t, with(t, s, "state/1/1/6.1.snapshot", nil), "verify", "ckpt")
	require.Equal(t, ExitFailure, code)
	require.Contains(t, out, "damage  state/1/1/")
	out, _, code = run(t, with(t, s, "state/1/1/6.1.snapshot", []byte("x")), "verify", "ckpt")
	require.Equal(t, ExitFailure, code)
	require.Contains(t, out, "damage  state/1/1/6.1.snapshot")
}
