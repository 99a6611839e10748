package milltool

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/vfs"
)

// stateBytes makes a whole file of partition 2 of counts.
func stateBytes(t testing.TB, kind statefile.Kind, version int64, chain statefile.Sum, rows map[string]int64) []byte {
	key, err := codec.KeyFor[string]()
	require.NoError(t, err)
	state, err := codec.For[int64]()
	require.NoError(t, err)
	var b bytes.Buffer
	e := statefile.NewEncoder(key, state)
	require.NoError(t, e.Begin(&b, statefile.Info{Kind: kind, Operator: "counts", Partition: 2, Version: version, BatchTime: zero, Chain: chain}))
	for _, k := range keysOfInts(rows) {
		require.NoError(t, e.Put(k, rows[k], zero))
	}
	_, err = e.End()
	require.NoError(t, err)
	return b.Bytes()
}

func keysOfInts(m map[string]int64) (list []string) {
	for _, k := range []string{"a\tb", "mat", "the", "dog", "x"} {
		if _, ok := m[k]; ok {
			list = append(list, k)
		}
	}
	return list
}

func chainOf(t testing.TB, s vfs.Store, version uint64) statefile.Sum {
	c, err := checkpoint.OpenRoot(s).Commit(context.Background(), version)
	require.NoError(t, err)
	return c.Operator(1).Partitions[2].Chain
}

// TestSnapshotOfOtherContent: a snapshot that is whole, has the right chain hash and holds something else.
func TestSnapshotOfOtherContent(t *testing.T) {
	base := whole(t)
	const name = "state/1/r1/2/5.2.snapshot"
	for what, rows := range map[string]map[string]int64{
		"a state":    {"a\tb": 7, "mat": 1, "the": 5},
		"a key less": {"a\tb": 7, "the": 6},
		"a key more": {"a\tb": 7, "mat": 1, "the": 6, "x": 1},
	} {
		s := with(t, base, name, stateBytes(t, statefile.Snapshot, 5, chainOf(t, base, 5), rows))
		out, _, code := run(t, s, "verify", "ckpt")
		require.Equal(t, ExitFailure, code, what)
		require.Regexp(t, `(?m)^damage +`+name+` +it does not hold what base and deltas give`, out, what)
	}
	// One of another line is passed over by every load: it does no harm.
	s := with(t, base, name, stateBytes(t, statefile.Snapshot, 5, statefile.Sum{1}, map[string]int64{"the": 99}))
	out, _, code := run(t, s, "verify", "ckpt")
	require.Equal(t, ExitOK, code, out)
	require.Regexp(t, `(?m)^note +`+name+` +it is not of this line of versions`, out)
	require.Equal(t, dumps(t, base), dumps(t, s))
}

// TestFileOfAnotherLine: a delta that is whole and not the one that was committed is read by no command.
func TestFileOfAnotherLine(t *testing.T) {
	base := whole(t)
	const name = "state/1/r1/2/5.2.delta"
	s := with(t, base, name, stateBytes(t, statefile.Delta, 5, chainOf(t, base, 4), map[string]int64{"the": 99}))
	out, _, code := run(t, s, "verify", "ckpt")
	require.Equal(t, ExitFailure, code)
	require.Regexp(t, `(?m)^damage +`+name+` `, out)
	out, errs, code := run(t, s, "history", "-touched", "ckpt", "counts", "the")
	require.Equal(t, ExitFailure, code, out)
	require.Contains(t, errs, name)
	require.Empty(t, out)
	neverWrong(t, readAll(t, base), s, name)
}

// TestKeyInTheWrongPartition: verify knows where a key belongs.
func TestKeyInTheWrongPartition(t *testing.T) {
	base := whole(t)
	const name = "state/1/r1/2/5.2.snapshot"
	s := with(t, base, name, stateBytes(t, statefile.Snapshot, 5, chainOf(t, base, 5), map[string]int64{"dog": 1}))
	out, _, _ := run(t, s, "verify", "ckpt")
	require.Contains(t, out, `key "dog" does not belong into this partition`)
}

// TestEverythingButTheStateIsGone: a root without commits and plans that has state is no new one.
func TestEverythingButTheStateIsGone(t *testing.T) {
	for _, folders := range [][]string{{"commits/", "offsets/"}, {"commits/", "offsets/", "metadata/", "owner/"}} {
		s := whole(t).Clone()
		for _, folder := range folders {
			list, err := s.List(t.Context(), folder)
			require.NoError(t, err)
			for _, o := range list {
				require.NoError(t, s.Delete(t.Context(), o.Name))
			}
		}
		out, _, code := run(t, s, "verify", "ckpt")
		require.Equal(t, ExitFailure, code, out)
		require.Regexp(t, `(?m)^damage +offsets/1 .*no commit and no plan is there, though state/`, out)
	}
}
