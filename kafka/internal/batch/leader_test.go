package batch

import (
	"testing"

	bt "github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/stretchr/testify/require"
)

func TestLeader(t *testing.T) {
	of := func(base int64, leader int32) []byte {
		b := bt.Values(base, "a", "b")
		b.Leader = leader
		return b.Append(nil)
	}
	all := append(of(0, 3), of(2, 5)...)
	require.EqualValues(t, -1, Leader(nil, 9))
	require.EqualValues(t, -1, Leader(all, 0), "all begin behind it")
	require.EqualValues(t, 3, Leader(all, 2))
	require.EqualValues(t, 5, Leader(all, 3))
	require.EqualValues(t, 3, Leader(all[:len(all)-1], 9), "a batch that is cut")
	require.EqualValues(t, -1, Leader(of(0, -1), 9))
}
