package exactlyonce

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/vfs"
)

// deaths is a job that loses its power before every call to the disk or the Kafka, and after
// it, and is started again: what readers see is what they see of one that nothing happens to.
type deaths struct {
	kinds string // its sinks
	job   func(l *life, tag string)
	sees  func(w *world) string
	has   []string // of what is seen, so that it is not nothing
	least int      // deaths
	// first and again are the options of the life that dies and of the next one.
	first, again []dstream.ContextOption
}

func (d deaths) everywhere(t *testing.T) {
	step, count := 1, 0
	if testing.Short() || invariants.Enabled {
		step = 7
	}
	begin := func() *world {
		w := newWorld(t, d.kinds, true)
		w.other = d.job
		return w
	}
	clean := begin()
	require.NoError(t, clean.life(nil, d.first...).run())
	want := d.sees(clean)
	for _, part := range d.has {
		require.Contains(t, want, part)
	}
	for at := 1; ; at += step {
		w := begin()
		in := &vfs.Faults{}
		in.Fail(vfs.Rule{K: at, After: at%3 == 0, Dead: true})
		err := w.life(in, d.first...).run()
		if in.Hits() == 0 {
			require.NoError(t, err)
			break
		}
		require.Error(t, err, "call %d", at)
		w.crash(uint64(at), at%2*50)
		require.NoError(t, w.life(nil, d.again...).run(), "call %d", at)
		require.Equal(t, want, d.sees(w), "call %d", at)
		count++
	}
	require.Greater(t, count, d.least)
	t.Log(count, "deaths")
}
