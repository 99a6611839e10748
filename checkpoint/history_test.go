package checkpoint

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/vfs"
)

// TestRandomHistories: runs that die at random calls, on machines that lose some
// of what was not synced, change the number of partitions and keep more or fewer
// versions. After each run that comes to its end, state and output are those of
// one uninterrupted run, and every kept version can be read (report 15).
func TestRandomHistories(t *testing.T) {
	type result struct {
		state string
		rows  []string
	}
	known := map[uint64]result{}
	want := func(n uint64) result {
		r, ok := known[n]
		if !ok {
			r.state, r.rows = reference(t, n)
			known[n] = r
		}
		return r
	}
	rapid.Check(t, func(rt *rapid.T) {
		ctx := t.Context()
		kind := rapid.SampledFrom([]string{"mem", "objects"}).Draw(rt, "store")
		w := &world{m: roots[kind](), b: &board{noTerm: rapid.Bool().Draw(rt, "no terms")}}
		done, parts := uint64(0), 2
		keep := rapid.Uint64Range(0, 3).Draw(rt, "keep")
		for range rapid.IntRange(1, 6).Draw(rt, "runs") {
			if rapid.IntRange(0, 2).Draw(rt, "rescale") == 0 {
				parts = rapid.IntRange(1, 4).Draw(rt, "parts")
			}
			target := done + rapid.Uint64Range(1, 3).Draw(rt, "batches")
			for {
				var f vfs.Faults
				dies := rapid.IntRange(0, 2).Draw(rt, "dies") > 0
				if dies {
					f.Fail(vfs.Rule{K: rapid.IntRange(1, 300).Draw(rt, "call"), Dead: true, After: rapid.Bool().Draw(rt, "after")})
				}
				j := w.job(&f, counts("counts", parts))
				j.cfg.Rescale, j.keep = true, keep
				err := runJob(ctx, j, target)
				if err == nil {
					break
				}
				require.ErrorIs(rt, err, vfs.ErrInjected)
				seed := rapid.Uint64().Draw(rt, "seed")
				w = &world{m: w.m.crash(seed, rapid.SampledFrom([]int{0, 30, 70}).Draw(rt, "kept")), b: w.b.clone()}
			}
			done = target
			r := want(done)
			require.Equal(rt, r.state, state0(t, w.m))
			require.Equal(rt, r.rows, w.b.rows["a"])
			require.Equal(rt, r.rows, w.b.rows["b"])
			readAll(rt, ctx, w.m)
		}
	})
}

// readAll reads every version that is kept.
func readAll(rt *rapid.T, ctx context.Context, m medium) {
	r := OpenRoot(m.open("reader", nil))
	nums, err := r.Commits(ctx)
	require.NoError(rt, err)
	require.NotEmpty(rt, nums)
	for _, n := range nums {
		op, err := r.OperatorAt(ctx, 1, n)
		require.NoError(rt, err)
		for p := range op.Partitions {
			hint := fmt.Sprintf("version %d of %v, partition %d", n, nums, p)
			require.NoError(rt, ReadRows(ctx, r, 1, p, n, func(n Notice) { rt.Fatalf("%s: %s: %v", hint, n.Text, n.Err) }, func(Row) error { return nil }), hint)
		}
	}
}
