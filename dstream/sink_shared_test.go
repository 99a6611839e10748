package dstream_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// G1: there may be several contexts in a process. Two that were given one sink do not
// take it from each other: the second is told so, whether it gets as far as the sink or
// not, and leaves it as it was; the first goes on. One after the other they may have it.
func TestOneSinkOfTwoContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, out := vfs.NewObjects(), vfs.NewObjects(), vfs.NewObjects()
		files := sink.NewFiles("files", out)
		job := func(root vfs.Store, opts ...dstream.ContextOption) *dstream.StreamingContext {
			c := dstream.New(time.Second, append(opts, dstream.WithOutput(discard{}), dstream.WithCheckpointStore(root))...)
			in := dstream.From(c, "in", newScript(1, []string{"a"}, []string{"b"}, []string{"c"}, []string{"d"}))
			dstream.Output(in, "rows", sink.Lines(files, sink.Text[string]))
			return c
		}
		rows := func() (list []string) {
			roots, err := sink.FileRoots(t.Context(), out, "files")
			require.NoError(t, err)
			for _, root := range roots {
				r, err := sink.OpenFiles(t.Context(), out, "files", root)
				require.NoError(t, err)
				for row, err := range r.Rows(t.Context()) {
					require.NoError(t, err)
					list = append(list, string(row.Data))
				}
			}
			return list
		}
		a := job(first)
		require.NoError(t, a.Start())
		<-time.After(1500 * time.Millisecond)

		err := job(second).Start()
		require.ErrorIs(t, err, sink.ErrMisuse)
		var e *sink.InUseError
		require.ErrorAs(t, err, &e)
		require.NotEqual(t, e.Root, e.ByRoot)
		require.NotEqual(t, e.Run, e.ByRun)
		require.ErrorContains(t, err, "give each context a sink of its own")
		<-time.After(time.Second)
		require.Error(t, job(first, dstream.WithTakeover(dstream.TakeoverNever)).Start(), "it is refused before it fences")
		<-time.After(time.Second)
		require.NoError(t, a.Stop(context.Background()))
		require.Equal(t, []string{"a", "b", "c"}, rows())

		for _, root := range []vfs.Store{first, second, first} {
			c := job(root)
			require.NoError(t, c.Start())
			<-time.After(1500 * time.Millisecond)
			require.NoError(t, c.Stop(context.Background()))
		}
		require.Greater(t, len(rows()), 3, "the second root's too")
	})
}
