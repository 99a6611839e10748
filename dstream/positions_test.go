package dstream_test

import (
	"context"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// rewinding is a source that forgets where it was: each run of it begins at 0.
type rewinding struct {
	words []string
	done  bool
}

func (s *rewinding) Open(context.Context, *source.Plan) error { return nil }

func (s *rewinding) Plan(context.Context, source.Limits) (source.Plan, error) {
	s.done = true
	return source.Plan{Ranges: []source.Range{{Partition: "p", Until: int64(len(s.words))}}}, nil
}

func (s *rewinding) Read(_ context.Context, r source.Range, emit func(int64, string) error) error {
	for i := r.From; i < r.Until; i++ {
		if err := emit(i, s.words[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *rewinding) Committed(context.Context, source.Plan) error { return nil }
func (s *rewinding) Close() error                                 { return nil }
func (s *rewinding) Done() bool                                   { return s.done }

// The positions of the checkpoint hold, also against a source that begins anew:
// what was counted is a duplicate.
func TestPositionsOutliveTheRun(t *testing.T) {
	dir := t.TempDir()
	run := func(words ...string) (got map[string]int, duplicates int64) {
		got = map[string]int{}
		require.NoError(t, dstream.Run(t.Context(), 2*time.Millisecond, func(ssc *dstream.StreamingContext) error {
			in := dstream.From(ssc, "words", &rewinding{words: words})
			ones := dstream.MapPair(in, func(w string) (string, int) { return w, 1 })
			out := dstream.MapWithState(ones, counter().NumPartitions(2))
			dstream.Foreach(out, func(_ context.Context, _ dstream.Batch, p word) error { got[p.Key] = p.Value; return nil })
			return nil
		}, dstream.WithCheckpoint(dir), dstream.WithStopWhenDone(), dstream.WithListener(dstream.Listener{
			BatchCompleted: func(p dstream.Progress) { duplicates += p.Sources[0].Duplicates },
		})))
		return got, duplicates
	}
	got, duplicates := run("a", "b")
	require.Equal(t, map[string]int{"a": 1, "b": 1}, got)
	require.Zero(t, duplicates)
	got, duplicates = run("a", "b", "a")
	require.Equal(t, map[string]int{"a": 2}, got)
	require.Equal(t, int64(2), duplicates)
}
