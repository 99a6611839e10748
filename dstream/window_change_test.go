package dstream_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
)

func sumsOf(length, slide time.Duration) dstream.Job {
	return func(c ssc) error {
		in := dstream.QueueNamed[kv](c, "in", 1)
		dstream.Print(dstream.ReduceByKeyAndWindowInverse(in, add, subtract, nil, length, slide, dstream.Name("sums")), 0)
		return nil
	}
}

// A new program whose inverse window is another one is refused, with both windows: the results would be
// wrong for ever. The old program goes on, and under another name the new one begins anew.
func TestInverseWindowChanged(t *testing.T) {
	for name, to := range map[string][2]time.Duration{"shorter": {2 * sec, sec}, "longer": {6 * sec, sec}, "slide": {4 * sec, 2 * sec}} {
		t.Run(name, func(t *testing.T) {
			kit := milltest.New(t, sec, sumsOf(4*sec, sec))
			kit.Checkpoint()
			in := milltest.Input[kv](kit, "in")
			for i := range 8 {
				in.Batch(kv{Key: "a", Value: 1 << i})
			}
			kit.Tick(6)
			kit.Restart()
			kit.Job(sumsOf(to[0], to[1]))
			err := kit.Start()
			require.ErrorIs(t, err, dstream.ErrWindowChanged)
			require.ErrorContains(t, err, `window "sums"`)
			require.ErrorContains(t, err, "there: 4s every 1s, in the program: "+to[0].String()+" every "+to[1].String())
			kit.Restart()
			kit.Job(sumsOf(4*sec, sec))
			kit.Tick(1)
			require.NoError(t, kit.Err())
			require.Equal(t, map[string]int{"a": 8 + 16 + 32 + 64}, milltest.State[string, int](kit, "sums"))
			kit.Restart()
			kit.Job(func(c ssc) error {
				in := dstream.QueueNamed[kv](c, "in", 1)
				dstream.Print(dstream.ReduceByKeyAndWindowInverse(in, add, subtract, nil, to[0], to[1], dstream.Name("other")), 0)
				return nil
			}, dstream.WithDrop("sums", "sums batches"))
			kit.Tick(1)
			require.NoError(t, kit.Err())
			require.Equal(t, map[string]int{"a": 128}, milltest.State[string, int](kit, "other"))
		})
	}
}
