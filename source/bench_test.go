package source_test

import (
	"strings"
	"testing"

	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// BenchmarkTextFiles reads a text of short lines, with and without a limit on
// records (for which the plan looks for the ends of lines).
func BenchmarkTextFiles(b *testing.B) {
	fsys := vfs.NewMem()
	text := strings.Repeat("the quick brown fox jumps over the lazy dog\n", 200_000)
	write(b, fsys, "f", text)
	for name, l := range map[string]source.Limits{"unlimited": {}, "limited": {Records: 10_000}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				s := source.TextFiles(fsys, "f")
				require.NoError(b, s.Open(b.Context(), nil))
				for !s.Done() {
					p, err := s.Plan(b.Context(), l)
					require.NoError(b, err)
					for _, r := range p.Ranges {
						require.NoError(b, s.Read(b.Context(), r, func(int64, string) error { n++; return nil }))
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/line")
		})
	}
}
