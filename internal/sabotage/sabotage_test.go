package sabotage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOn(t *testing.T) {
	t.Setenv("STATEMILL_SABOTAGE", "no-undo")
	require.Equal(t, Enabled, On("no-undo"))
	require.False(t, On("other"))
	require.False(t, On(""))
	t.Setenv("STATEMILL_SABOTAGE", "")
	require.False(t, On("no-undo"))
}
