package dstream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
)

// A batch that fails after its commit stays committed, and its error says so.
func TestFailedAfterTheCommit(t *testing.T) {
	for at, committed := range map[string]bool{
		"Plan": false, "Read": false, "Committed": true, "Done": true, "BatchCompleted": true, "output": false,
	} {
		t.Run(at, func(t *testing.T) {
			q := source.NewQueue(1, []int{1})
			q.Finish()
			err := dstream.Run(t.Context(), time.Millisecond, func(c ssc) error {
				in := dstream.From(c, "in", source.Source[int](rude{q, at}))
				dstream.Foreach(in, func(context.Context, dstream.Batch, int) error {
					if at == "output" {
						return errors.New("boom")
					}
					return nil
				})
				return nil
			}, dstream.WithStopWhenDone(), dstream.WithIORetry(0), dstream.WithListener(dstream.Listener{
				BatchCompleted: func(dstream.Progress) {
					if at == "BatchCompleted" {
						panic("boom")
					}
				}}))
			var b *dstream.BatchError
			require.ErrorAs(t, err, &b)
			require.Equal(t, committed, b.Committed)
			if committed {
				require.Equal(t, "commit", b.Phase)
				require.ErrorContains(t, err, "(the epoch is committed): ")
			} else {
				require.NotContains(t, err.Error(), "is committed")
			}
		})
	}
}
