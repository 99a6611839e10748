package sinktest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The suite notices what it is there for: each deliberately broken system fails
// the subtest that is about its fault.
func TestSuiteCatchesBrokenSinks(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		flaw string
		want string
	}{
		{Kafka, "fence does nothing", "FenceShutsOutOlder"},
		{Kafka, "rows turned round", "RowsInOrder"},
		{Kafka, "last row lost", "RowsInOrder"},
		{Kafka, "rows seen before the commit", "NothingBeforeCommit"},
		{Kafka, "abort leaves rows", "AbortLeavesNothing"},
		{Kafka, "epochs not compared", "EpochsGoForward"},
		{Kafka, "an empty epoch leaves the memory", "EmptyEpochMovesMemory"},    // CE20
		{Kafka, "memory read before it is settled", "MemoryIsWhatWasCommitted"}, // CE15
		{Kafka, "a repeated commit writes again", "LostCommitAnswer"},
		{Kafka, "roots share a memory", "RootsApart"},

		{SQL, "fence does nothing", "FenceShutsOutOlder"},
		{SQL, "lower terms may fence", "LowerTermIsRefused"},
		{SQL, "fence takes the writer's term", "MemoryIsWhatWasCommitted"}, // CE10
		{SQL, "fence forgets the memory", "FenceAgain"},
		{SQL, "digest not kept", "FreshRoot"},
		{SQL, "commit does not look at the fence", "FenceShutsOutOlder"},
		{SQL, "memory apart from the data", "CrashAtEveryCall"},
		{SQL, "epochs not compared", "EpochsGoForward"},
		{SQL, "a repeated commit fails", "LostCommitAnswer"},
		{SQL, "an empty epoch leaves the memory", "EmptyEpochMovesMemory"},
		{SQL, "roots share a memory", "RootsApart"},

		{FileLog, "fence does nothing", "FenceShutsOutOlder"}, // CE11
		{FileLog, "lower terms may fence", "LowerTermIsRefused"},
		{FileLog, "memory from before the fence", "TwoRunsInterleaved"},
		{FileLog, "what is taken is taken for done", "FenceShutsOutOlder"},
		{FileLog, "an entry is replaced", "FenceShutsOutOlder"},
		{FileLog, "last row lost", "RowsInOrder"},
	} {
		t.Run(c.kind.String()+"/"+c.flaw, func(t *testing.T) {
			require.Equal(t, []string{c.want}, Failing(t, serverCase(c.kind, c.flaw), c.want))
		})
	}
}
