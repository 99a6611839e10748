package milltool

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/vfs"
)

// TestHistoryOverEverything: keys that come, go, come back, over a rescale with a partitioner that only the job has, an
// operator that is dropped and one that takes its name.
func TestHistoryOverEverything(t *testing.T) {
	s := vfs.NewObjects()
	m := newMaker(t, s)
	m.start()
	counts := addOp[string, int64](m, "counts", 2, false)
	counts.op.Partitioner = `func "mine"`
	m.metadata()
	counts.put("a", 1)
	counts.put("b", 1)
	m.commit(checkpoint.KindBatch) // 1
	counts.remove("a")
	m.commit(checkpoint.KindBatch) // 2
	counts.put("a", 2)
	m.commit(checkpoint.KindBatch) // 3
	counts.rescale(3)
	m.metadata()
	m.commit(checkpoint.KindChange) // 4
	counts.put("a", 3)
	m.commit(checkpoint.KindBatch) // 5
	m.ops = nil
	m.metadata()
	m.commit(checkpoint.KindChange) // 6: dropped
	again := addOp[string, int64](m, "counts", 1, false)
	again.op.Number = 2
	m.metadata()
	again.put("a", 9)
	m.commit(checkpoint.KindBatch) // 7
	out, errs, code := run(t, s, "history", "ckpt", "counts", "a")
	require.Equal(t, ExitOK, code, errs)
	require.Equal(t, `VERSION  TIME                  CHANGE   STATE
1        2023-11-14T22:13:30Z  present  1
2        2023-11-14T22:13:40Z  removed  1 →
3        2023-11-14T22:13:50Z  added    2
5        2023-11-14T22:14:10Z  changed  2 → 3
6        2023-11-14T22:14:20Z  removed  3 →
7        2023-11-14T22:14:30Z  added    9
`, out)
	// A key in partitions that only the job knows is found; one that is nowhere is not.
	for _, version := range []string{"1", "3", "5"} {
		_, errs, code = run(t, s, "get", "ckpt", "counts", "a", "-version", version)
		require.Equal(t, ExitOK, code, errs)
		_, _, code = run(t, s, "get", "ckpt", "counts", "zebra", "-version", version)
		require.Equal(t, ExitFailure, code)
	}
	out, errs, code = run(t, s, "verify", "ckpt")
	require.Equal(t, ExitOK, code, "%s%s", out, errs)
	// An operator that one of two versions lacks is all added, or all removed.
	out, _, code = run(t, s, "diff", "ckpt", "counts", "6", "7")
	require.Equal(t, ExitOK, code)
	require.Equal(t, "+  \"a\"  9\n", out)
	out, _, code = run(t, s, "diff", "ckpt", "counts", "5", "6")
	require.Equal(t, ExitOK, code)
	require.Equal(t, "-  \"a\"  3\n-  \"b\"  1\n", out)
	// Offline, nobody can place such keys.
	m.ops = []makerOp{counts}
	_, errs, code = run(t, olderRoot(t), "rescale", "ckpt", "counts=5", "-takeover")
	require.Equal(t, ExitFailure, code)
	require.Contains(t, errs, "a function that only the job has: start the job once with WithRescale")
}

// olderRoot has one version of an operator with a partitioner of the user's own.
func olderRoot(t *testing.T) *vfs.Objects {
	s := vfs.NewObjects()
	m := newMaker(t, s)
	m.start()
	counts := addOp[string, int64](m, "counts", 2, false)
	counts.op.Partitioner = `func "mine"`
	m.metadata()
	counts.put("a", 1)
	m.commit(checkpoint.KindBatch)
	return s
}

// TestStatesOfAnOlderType: what an earlier program has stored is printed by its own schema where the newest does not fit.
func TestStatesOfAnOlderType(t *testing.T) {
	type old struct{ Hits int8 }
	type now struct {
		Hits  string
		Extra int
	}
	s := vfs.NewObjects()
	m := newMaker(t, s)
	m.start()
	ops := addOp[string, old](m, "ops", 1, false)
	m.metadata()
	ops.put("a", old{3})
	m.commit(checkpoint.KindBatch)
	schema, err := codec.SchemaOf[now]()
	require.NoError(t, err)
	ops.op.Older = []checkpoint.OldSchema{{State: ops.op.State, Until: 1}}
	ops.op.State = schema
	m.metadata()
	m.commit(checkpoint.KindBatch)
	out, errs, code := run(t, s, "get", "-json", "ckpt", "ops", "a")
	require.Equal(t, ExitOK, code, errs)
	require.Contains(t, out, `"state":{"Hits":3}`)
	_, _, code = run(t, s, "verify", "ckpt")
	require.Equal(t, ExitOK, code)
}
