package milltest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

// Listeners are told of every tick that got no batch: those that found the queue
// full, and those that the clock jumped over.
func TestTickSkippedIsTold(t *testing.T) {
	var skipped []int64
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.From(ssc, "in", source.NewQueue[int](1)), 1)
		return nil
	}, dstream.WithListener(dstream.Listener{TickSkipped: func(at time.Time) { skipped = append(skipped, at.Unix()) }}))
	milltest.Input[int](kit, "in")
	gate := kit.BlockOutput("in")
	kit.Advance(1)
	gate.Entered()
	kit.Advance(5) // 2 and 3 wait
	gate.Release()
	require.True(t, kit.Await())
	kit.Tick(1)
	require.Equal(t, []int64{4, 5, 6}, skipped)
	kit.AdvanceTime(3 * time.Second)
	require.True(t, kit.Await())
	require.Equal(t, []int64{4, 5, 6, 8, 9}, skipped)
	all := kit.Progress()
	require.EqualValues(t, len(skipped), all[len(all)-1].SkippedTicks)
}
