package milltest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
)

// counting counts words, and times keys out after the given time.
func counting(idle time.Duration) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		words := dstream.QueueNamed[string](ssc, "words", 1)
		ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
		spec := dstream.Function(func(w string, one dstream.Option[int], s *dstream.State[int]) dstream.Pair[string, int] {
			if s.IsTimingOut() {
				return dstream.KV(w, -s.Get())
			}
			s.Update(s.OrElse(0) + one.OrElse(0))
			return dstream.KV(w, s.Get())
		}).Named("counts").NumPartitions(2)
		if idle > 0 {
			spec = spec.Timeout(idle)
		}
		dstream.Print(dstream.MapWithState(ones, spec), 10, dstream.Name("out"))
		return nil
	}
}

type total = dstream.Pair[string, int]

func TestRestartGoesOn(t *testing.T) {
	kit := milltest.New(t, time.Second, counting(0))
	kit.Checkpoint()
	in := milltest.Input[string](kit, "words")
	in.Batch("a", "b", "a")
	kit.Tick(1)
	kit.Restart()
	in.Batch("a")
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 3, "b": 1}, milltest.State[string, int](kit, "counts"))
	require.Equal(t, [][]total{{{Key: "b", Value: 1}, {Key: "a", Value: 1}, {Key: "a", Value: 2}}, {{Key: "a", Value: 3}}}, milltest.Output[total](kit, "out"))
	kit.Crash()
	in.Batch("b")
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 3, "b": 2}, milltest.State[string, int](kit, "counts"))
}
