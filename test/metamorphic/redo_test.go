package metamorphic

import (
	"context"
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// attempt3 runs a saga up to its third batch, which fails in the sink, and gives the delta
// files of that batch by their partition's folder.
func (s *saga) attempt3(workers int, fault vfs.Rule) map[string]string {
	s.lives++
	var f vfs.Faults
	f.Fail(fault)
	fs := vfs.WithFaults(s.disk, &f)
	r := s.begin(true, dstream.WithParallelism(workers), dstream.WithIORetry(0),
		dstream.WithCheckpointStore(s.store(fs, "ckpt"), dstream.SnapshotEvery(100)))
	s.tellingJob(r.ssc, 3, 20, sink.NewFiles("out", s.store(fs, "out")))
	err := r.ssc.Start()
	for range 3 {
		if err == nil {
			r.clock.Advance(time.Second)
			err = r.wait(s, r.clock.Now())
		}
	}
	_ = r.ssc.Stop(context.Background())
	require.Positive(s, f.Hits())
	s.now = r.clock.Now()
	found := map[string]string{}
	store := s.store(s.disk, "ckpt")
	list, err := store.List(s.Context(), "state/")
	require.NoError(s, err)
	for _, o := range list {
		if path.Base(o.Name) == fmt.Sprintf("3.%d.delta", s.lives) {
			b, err := store.Get(s.Context(), o.Name)
			require.NoError(s, err)
			found[path.Dir(o.Name)] = string(b)
		}
	}
	return found
}

// An epoch that is computed again gives the same files byte for byte: in a state that
// was computed, in one that was loaded, after an attempt that was aborted by a failing
// output, with other numbers of workers.
func TestRedoGivesEqualBytes(t *testing.T) {
	s := &saga{TB: t, disk: vfs.NewMem(), now: time.Unix(1_000_000, 0), plain: map[int64][]string{}, planned: map[uint64]int64{}}
	for b := range 3 {
		var batch []command
		for i := range 60 {
			batch = append(batch, command{Key: fmt.Sprint("key ", (i*7+b*13)%29), Op: "+++-?"[(i+b)%5], N: int64(i % 9)})
		}
		s.batches = append(s.batches, batch)
	}
	// Before the sink has the epoch: what every sink has is not computed again.
	dies := vfs.Rule{Path: "data/*/*/3.*", Kinds: vfs.KindCreate, Forever: true, Dead: true}
	want := s.attempt3(1, dies) // no state was loaded
	require.GreaterOrEqual(t, len(want), 6, "files of several operators and partitions")
	for _, fault := range []vfs.Rule{
		dies, // in a state that was loaded
		{Path: "data/*/*/3.*", Kinds: vfs.KindLink, Forever: true}, // given up in time: aborted
		dies, // after that
	} {
		require.Equal(t, want, s.attempt3(1+s.lives, fault), "term %d", s.lives)
	}
}
