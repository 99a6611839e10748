package milltool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// partitionedJob counts the words of the poem in so many partitions.
func partitionedJob(mem vfs.FS, partitions int) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		words := dstream.From(ssc, "words", source.TextFiles(mem, "poem.txt"))
		ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
		dstream.Print(dstream.MapWithState(ones, dstream.Function(
			func(w string, n dstream.Option[int], s *dstream.State[int]) int {
				s.Update(s.OrElse(0) + n.OrElse(0))
				return s.Get()
			}).Named("counts").NumPartitions(partitions)), 1)
		return nil
	}
}

func countsOf(t *testing.T, s vfs.Store) map[string]int {
	out, errs, code := run(t, s, "dump", "-json", "ckpt", "counts")
	require.Equal(t, ExitOK, code, errs)
	got := map[string]int{}
	for line := range strings.Lines(out) {
		var r struct {
			Key   string
			State int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		got[r.Key] = r.State
	}
	return got
}

// TestJobGoesOn: a job that starts on a fork, on a fork of an older version, and on a root that was rescaled or repaired
// offline, goes on where it stood and counts every word once.
func TestJobGoesOn(t *testing.T) {
	mem, root, counts := wordRoot(t)
	goOn := func(s vfs.Store, partitions int) {
		t.Helper()
		require.NoError(t, dstream.Run(context.Background(), time.Millisecond, partitionedJob(mem, partitions),
			dstream.WithCheckpointStore(s), dstream.WithMaxRecordsPerBatch(7), dstream.WithStopWhenDone(), dstream.WithOutput(io.Discard)))
		require.Equal(t, counts, countsOf(t, s))
		out, errs, code := run(t, s, "verify", "ckpt")
		require.Equal(t, ExitOK, code, "%s%s", out, errs)
	}
	for _, version := range []int{1, 3} {
		for _, partitions := range []int{2, 5, 1} {
			fork := vfs.NewObjects()
			env := Env{Open: func(dir string) (vfs.Store, error) {
				if dir == "fork" {
					return fork, nil
				}
				return root, nil
			}}
			_, errs, code := runEnv(t, env, "fork", "ckpt", "fork", "-version", fmt.Sprint(version))
			require.Equal(t, ExitOK, code, errs)
			require.NotEqual(t, counts, countsOf(t, fork))
			if partitions != 2 {
				_, errs, code = run(t, fork, "rescale", "ckpt", fmt.Sprint("counts=", partitions), "-takeover")
				require.Equal(t, ExitOK, code, errs)
			}
			goOn(fork, partitions)
		}
	}
	require.Equal(t, counts, countsOf(t, root), "the fork has touched its source")
}
