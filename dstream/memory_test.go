package dstream_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
)

// Design 7: a batch that would take more state memory than allowed fails whole, in
// the middle of it if it must; a warning with the largest operators comes before.
func TestStateMemoryLimit(t *testing.T) {
	const limit = 4 << 20
	var warned []dstream.StateMemory
	job := func(ssc *dstream.StreamingContext) error {
		words := wordsOf(ssc)
		dstream.Print(dstream.MapWithState(words, counter().NumPartitions(2)), 0, dstream.Name("out"))
		texts := dstream.MapWithState(words, dstream.Function(func(w string, _ dstream.Option[int], s *dstream.State[string]) int {
			s.Update(strings.Repeat(w, 20))
			return 0
		}).Named("texts").NumPartitions(2))
		dstream.Print(texts, 0, dstream.Name("texts out"))
		return nil
	}
	kit, in := durableKit(t, job, dstream.WithStateMemoryLimit(limit),
		dstream.WithListener(dstream.Listener{StateMemoryHigh: func(s dstream.StateMemory) { warned = append(warned, s) }}))
	n := 0
	next := func(keys int) {
		var batch []string
		for range keys {
			batch = append(batch, fmt.Sprintf("%08d", n))
			n++
		}
		in.Batch(batch...)
		kit.Tick(1)
	}
	for kit.Err() == nil && len(warned) == 0 {
		next(500)
	}
	require.NoError(t, kit.Err())
	require.Len(t, warned, 1)
	require.Equal(t, "texts", warned[0].Operators[0].Operator, "the largest first")
	require.Greater(t, warned[0].Bytes, int64(limit/5*4))
	require.LessOrEqual(t, warned[0].Bytes, int64(limit))
	progress := kit.Progress()[len(kit.Progress())-1]
	require.GreaterOrEqual(t, progress.Operators[1].MemoryBytes, progress.Operators[1].HeapBytes+int64(n*160))
	before := n
	epoch := kit.Epoch()

	next(200_000) // found in the middle of the batch
	err := kit.Err()
	require.ErrorIs(t, err, dstream.ErrStateMemory)
	var full *dstream.StateMemoryError
	require.True(t, errors.As(err, &full))
	require.Equal(t, int64(limit), full.Limit)
	require.Less(t, full.Keys, int64(100_000))
	require.Greater(t, full.State.Bytes, int64(limit))
	require.ErrorContains(t, err, "Timeout")
	require.Len(t, warned, 1)
	require.Equal(t, epoch, kit.Epoch())
	require.Len(t, stateNow(kit), before, "nothing of the epoch is kept")
}
