// Package sourcetest is the acceptance suite of [source.Source]: every source,
// ours or a user's, must pass [Run]. It checks the contract in package source's
// comment, one subtest a rule, through the interface alone.
//
// It does not test what a source is connected to: faults of networks and files
// are the source's own tests.
package sourcetest

import (
	"context"
	"testing"

	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// Case is one source with an input of its own.
type Case[T any] struct {
	// Source is new and not opened. The suite opens and closes it.
	Source source.Source[T]
	// Want is every record of the input, at least 8. Order counts only if Ordered.
	Want []T
	// Ordered says that reading the ranges of each plan one after the other gives
	// the records in the order of Want.
	Ordered bool
	// Again returns another source over the same input, as the next run would make
	// it. Nil leaves out what needs a next run.
	Again func() source.Source[T]
	// NotReplayable says that the input cannot be read again: in the source that
	// Again returns, an earlier run's ranges must give source.ErrNotReplayable.
	NotReplayable bool
	// More adds records to the input and returns them. Nil if that cannot be.
	More func() []T
	// Ends says that the source must be Done after Want.
	Ends bool
	// Together says that the partitions have one numbering together: the ranges of a
	// plan follow on each other, and the next plan's on them. Else each partition's do.
	Together bool
	// Size is how many bytes a record counts for Limits.Bytes, or fewer. Nil leaves out
	// the test of that limit; a source of records that have no size has no other way.
	Size func(T) int64
	// Judged says that the source does not know the sizes before it reads: then a plan
	// may have half as many bytes more than its limit.
	Judged bool
}

// Run runs the suite. open makes a case anew for each subtest; it registers what
// is to be cleaned up with t.Cleanup.
func Run[T any](t *testing.T, open func(t *testing.T) Case[T]) {
	for name, test := range map[string]func(*run[T]){
		"every record once":               everyRecordOnce[T],
		"same range same records":         sameRange[T],
		"limits":                          limits[T],
		"limit of bytes":                  limitOfBytes[T],
		"a negative limit allows nothing": negativeLimit[T],
		"resume from any plan":            resume[T],
		"emit's error ends the read":      emitError[T],
		"cancelled context":               cancelled[T],
		"not open":                        notOpen[T],
		"ranges that were never planned":  badRanges[T],
		"records that come later":         comeLater[T],
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c := open(t)
			require.GreaterOrEqual(t, len(c.Want), 8, "the case needs records")
			r := &run[T]{T: t, ctx: ctx, c: c, src: c.Source, open: open}
			t.Cleanup(func() { _ = c.Source.Close() })
			test(r)
		})
	}
}
