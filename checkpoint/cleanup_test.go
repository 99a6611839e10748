package checkpoint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDeletable is P5, case by case.
func TestDeletable(t *testing.T) {
	one := func(epoch uint64, file string) *Commit {
		return &Commit{Epoch: epoch, Floor: 4, Operators: []OperatorCommit{{Number: 2, Layout: 1, Partitions: []PartitionCommit{{}, {File: file}}}}}
	}
	commits := map[uint64]*Commit{4: one(4, "4.1.delta"), 5: one(5, ""), 6: one(6, "6.3.delta")}
	commit := func(n uint64) *Commit { return commits[n] }
	newest := commits[6]
	for name, want := range map[string]bool{
		"commits/3": true, "commits/4": false, "commits/6": false, "commits/7": false, "commits/x": false, "commits/03": false,
		"offsets/3": true, "offsets/4": false, "offsets/7": false,
		"owner/1": false, "metadata/1": false, "lock": false, "strange": false, "state/2/r1/1/what": false,

		"state/2/r1/1/3.1.delta":    true, // (a) below the floor
		"state/2/r1/1/3.1.snapshot": true,
		"state/1/0/3.1.delta":       true,  // of an operator that is gone
		"state/2/r1/1/4.1.delta":    false, // named
		"state/2/r1/1/4.2.delta":    true,  // (b) of an attempt that lost
		"state/2/r1/0/4.1.delta":    true,  // the partition did not change
		"state/2/r1/9/4.1.delta":    true,  // no such partition
		"state/2/0/1/4.1.delta":     false, // not a name of ours
		"state/2/1/4.1.delta":       true,  // of another layout
		"state/3/1/4.1.delta":       true,  // of another operator
		"state/2/r1/1/5.2.delta":    true,
		"state/2/r1/1/6.3.delta":    false,
		"state/2/r1/1/4.2.snapshot": false, // its chain hash decides
		"state/2/r1/1/7.2.delta":    false, // CE7: an epoch without a commit
		"state/2/r1/1/9.9.delta":    false,
	} {
		require.Equal(t, want, Deletable(name, newest, commit), name)
	}
	delete(commits, 5)
	require.False(t, Deletable("state/2/r1/1/5.2.delta", newest, commit), "a commit that is not known decides nothing")

	for name, want := range map[string]bool{
		"state/2/r1/1/3.1.delta": true, "state/2/r1/1/6.3.delta": true, "state/2/r1/1/6.2.delta": true, "state/2/r1/1/5.2.delta": false,
		"state/2/r1/1/7.2.delta": false, "state/2/r1/1/3.2.snapshot": true, "state/2/r1/1/5.2.snapshot": false,
		"commits/3": true, "commits/7": false, "owner/2": false,
	} {
		require.Equal(t, want, DeletableLeftover(name, "old", "mine", newest, commit), name)
		require.False(t, DeletableLeftover(name, "mine", "mine", newest, commit), "%s is being written", name)
	}
}
