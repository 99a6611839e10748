package sink_test

import (
	"context"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// BenchmarkFiles writes epochs of 100,000 rows of 20 bytes; ns/row is the figure.
func BenchmarkFiles(b *testing.B) {
	const n = 100_000
	row := []byte("twenty bytes of text")
	for b.Loop() {
		f := sink.NewFiles("out", vfs.NewObjects())
		require.NoError(b, f.Fence(b.Context(), fenceOf("r", 1)))
		s := sink.Lines(f, func(dst, row []byte) ([]byte, error) { return append(dst, row...), nil })
		out := sink.Bind(s, "out", 1, func(_ context.Context, _ int, yield func([]byte) error) error {
			for range n {
				if err := yield(row); err != nil {
					return err
				}
			}
			return nil
		})
		w, err := sink.NewWriter(f, 1, []sink.Output{out}, nil)
		require.NoError(b, err)
		sum, err := w.Prepare(b.Context(), false)
		require.NoError(b, err)
		require.NoError(b, w.Commit(b.Context(), sink.Memory{Epoch: 1, Term: 1, Output: sum}))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
}
