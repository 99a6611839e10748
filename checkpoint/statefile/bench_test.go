package statefile

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/statemap"
)

const benchKeys = 1_000_000

// benchMap has keys of 16 bytes, int64 states of a Zipf law, and times of the last 600 batches of a second.
func benchMap(b *testing.B) (*kit[string, int64], *statemap.Map[string, int64], Info) {
	k := newKit[string, int64](b)
	m := benchEmpty(b)
	i := info(600, None)
	rng := rand.New(rand.NewPCG(1, 1))
	z := rand.NewZipf(rng, 1.3, 4, 1<<30)
	for n := range benchKeys {
		require.NoError(b, m.Put(word(n), int64(z.Uint64()), i.BatchTime-second*int64(rng.IntN(600))))
	}
	return k, m, i
}

func benchEmpty(b *testing.B) *statemap.Map[string, int64] {
	key, err := codec.KeyFor[string]()
	require.NoError(b, err)
	m, err := statemap.New[string, int64](statemap.Options[string]{Hash: key.HashFunc(), InitialCapacity: benchKeys})
	require.NoError(b, err)
	return m
}

// BenchmarkSnapshot writes and loads a snapshot of 1M keys, in nanoseconds and bytes per record; design 15 asks for a
// load in at most 300.
func BenchmarkSnapshot(b *testing.B) {
	k, m, i := benchMap(b)
	for _, c := range []Compression{None, S2, Zstd} {
		i.Compression = c
		var out bytes.Buffer
		out.Grow(64 << 20)
		b.Run("encode/"+c.String(), func(b *testing.B) {
			for b.Loop() {
				out.Reset()
				_, err := k.enc.Snapshot(&out, i, m)
				require.NoError(b, err)
			}
			perRecord(b)
			b.ReportMetric(float64(out.Len())/benchKeys, "B/rec")
		})
		b.Run("verify/"+c.String(), func(b *testing.B) {
			for b.Loop() {
				_, _, err := Verify(bytes.NewReader(out.Bytes()), "f", nil)
				require.NoError(b, err)
			}
			perRecord(b)
		})
		b.Run("load/"+c.String(), func(b *testing.B) {
			best := time.Hour
			for b.Loop() {
				to := benchEmpty(b)
				start := time.Now()
				_, err := k.dec.Load(bytes.NewReader(out.Bytes()), "f", want(Snapshot, 600), to)
				best = min(best, time.Since(start))
				require.NoError(b, err)
			}
			perRecord(b)
			b.ReportMetric(float64(best.Nanoseconds())/benchKeys, "best-ns/rec")
		})
	}
}

// BenchmarkDelta writes the delta of a batch that changed 1 % of 1M keys.
func BenchmarkDelta(b *testing.B) {
	k, m, i := benchMap(b)
	m, err := m.Copy()
	require.NoError(b, err)
	for n := range benchKeys / 100 {
		require.NoError(b, m.Put(word(n*97), 5, i.BatchTime))
	}
	for _, c := range []Compression{None, S2} {
		i.Compression = c
		b.Run(c.String(), func(b *testing.B) {
			var out bytes.Buffer
			for b.Loop() {
				out.Reset()
				_, err := k.enc.Delta(&out, i, m)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(benchKeys/100), "ns/rec")
			b.ReportMetric(float64(out.Len())/(benchKeys/100), "B/rec")
		})
	}
}

func perRecord(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchKeys, "ns/rec")
}
