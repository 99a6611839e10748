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
