package invariants

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	require.NotPanics(t, func() { Check(true, "never") })
	broken := func() { Check(false, "slot %d", 7) }
	if !Enabled {
		require.NotPanics(t, broken)
		return
	}
	require.PanicsWithValue(t, "invariant broken: slot 7", broken)
}
