package checkpoint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRunAndRunAgain: epochs follow one another over sessions, and the state is
// that of an uninterrupted run.
func TestRunAndRunAgain(t *testing.T) {
	forStores(t, func(t *testing.T, m medium) {
		ctx := t.Context()
		j := newJob(m, nil)
		require.NoError(t, j.run(ctx, 3))
		require.NoError(t, j.close())
		j = newJob(m, nil)
		require.NoError(t, j.open(ctx))
		start := j.s.Start()
		require.EqualValues(t, 2, start.Term)
		require.EqualValues(t, 3, start.Commit.Epoch)
		require.EqualValues(t, 3, start.Last.Epoch)
		require.Nil(t, start.Pending)
		require.False(t, start.Fresh)
		require.EqualValues(t, zero, start.Zero)
		require.NoError(t, j.run(ctx, 6))
		require.NoError(t, j.close())
		want, _ := reference(t, 6)
		require.Equal(t, want, state0(t, m))
	})
}

// TestFloorNeverFalls: a lower floor than before counts as that one, and a
// change keeps it.
func TestFloorNeverFalls(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	j := newJob(m, nil)
	j.keep = 1
	require.NoError(t, runJob(ctx, j, 6))
	j = newJob(m, nil, counts("counts", 3))
	j.cfg.Rescale = true
	require.NoError(t, runJob(ctx, j, 7)) // it does not ask for a floor
	r := OpenRoot(m.open("r", nil))
	for n := uint64(6); n <= 8; n++ {
		c, err := r.Commit(ctx, n)
		require.NoError(t, err)
		require.EqualValues(t, 5, c.Floor, n)
	}
}
