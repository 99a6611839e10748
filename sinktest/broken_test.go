package sinktest

import (
	"context"
	"errors"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
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
		{Kafka, "two runs have it", "OneRunAtATime"},
		{Kafka, "dead transactions live on", "CloseAndFence"},

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
		{SQL, "two runs have it", "OneRunAtATime"},

		{FileLog, "fence does nothing", "FenceShutsOutOlder"}, // CE11
		{FileLog, "lower terms may fence", "LowerTermIsRefused"},
		{FileLog, "memory from before the fence", "TwoRunsInterleaved"},
		{FileLog, "what is taken is taken for done", "FenceShutsOutOlder"},
		{FileLog, "an entry is replaced", "FenceShutsOutOlder"},
		{FileLog, "last row lost", "RowsInOrder"},
		{FileLog, "two runs have it", "OneRunAtATime"},
	} {
		t.Run(c.kind.String()+"/"+c.flaw, func(t *testing.T) {
			require.Equal(t, []string{c.want}, Failing(t, serverCase(c.kind, c.flaw), c.want))
		})
	}
}

// fussyUnit is a unit whose transactions cannot be aborted when they are over.
type fussyUnit struct {
	sink.Unit
	how string
}

func (u *fussyUnit) Begin(ctx context.Context, epoch uint64) (sink.Tx, error) {
	tx, err := u.Unit.Begin(ctx, epoch)
	if err != nil {
		return nil, err
	}
	return &fussyTx{Tx: tx, how: u.how}, nil
}

type fussyTx struct {
	sink.Tx
	how                string
	aborted, committed bool
}

func (t *fussyTx) Commit(ctx context.Context, m sink.Memory) error {
	err := t.Tx.Commit(ctx, m)
	t.committed = err == nil
	return err
}

func (t *fussyTx) Abort(ctx context.Context) error {
	if t.aborted && t.how == "a second abort fails" || t.committed && t.how == "an abort after the commit fails" {
		return errors.New("there is no transaction")
	}
	t.aborted = true
	return t.Tx.Abort(ctx)
}

func TestSuiteCatchesBrokenTransactions(t *testing.T) {
	for _, kind := range Kinds() {
		for how, want := range map[string][]string{"none": nil, "a second abort fails": {"AbortMoreThanOnce"}, "an abort after the commit fails": {"AbortMoreThanOnce"}} {
			found := Failing(t, func(t *testing.T) Case {
				c := serverCase(kind, "")(t)
				open := c.Open
				c.Open = func(in vfs.Injector) sink.Unit { return &fussyUnit{open(in), how} }
				return c
			}, "AbortMoreThanOnce")
			require.Equal(t, want, found, "%s: %s", kind, how)
		}
	}
}
