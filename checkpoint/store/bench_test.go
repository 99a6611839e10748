package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/vfs"
)

// benchKey is a key of 16 bytes.
func benchKey(i int) string { return fmt.Sprintf("key-%012d", i) }

// filled is a world of one partition whose version 1 has n keys and, with
// snapshot, a snapshot of it.
func filled(b *testing.B, n int, snapshot bool) *world {
	w := begin(b, vfs.NewObjects(), 1, 1)
	m, err := mapOf()
	require.NoError(b, err)
	for i := range n {
		require.NoError(b, m.Put(benchKey(i*7919%n), int64(i), 1e9)) // 7919 is no divisor
	}
	pc, err := w.op.WriteDelta(context.Background(), 0, 1, 1e9, checkpoint.PartitionCommit{}, m, false)
	require.NoError(b, err)
	w.commitAs(1, pc)
	w.live[0] = m
	if snapshot {
		_, err := w.op.Snapshot(context.Background(), 0, 1, m)
		require.NoError(b, err)
	}
	return w
}

// BenchmarkLoad loads a million keys on one core; ns/op is the time of it.
func BenchmarkLoad(b *testing.B) {
	for _, from := range []string{"delta", "snapshot"} {
		b.Run(from, func(b *testing.B) {
			const keys = 1_000_000
			w := filled(b, keys, from == "snapshot")
			op := w.fresh()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				m, stats, err := op.Load(context.Background(), 0, 1, mapOf, nil)
				if err != nil || stats.Keys != keys {
					b.Fatal(err, stats)
				}
				m.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
		})
	}
}

// BenchmarkWriteDelta writes what an epoch changed of a million keys: time and
// bytes per changed key, and the bytes against what keys and states alone take.
func BenchmarkWriteDelta(b *testing.B) {
	for _, changed := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(changed), func(b *testing.B) {
			w := filled(b, 1_000_000, false)
			m, err := w.live[0].Copy()
			require.NoError(b, err)
			raw := 0
			key, state := codecs(b)
			for i := range changed {
				k, v := benchKey(i*7%1_000_000), int64(i)
				require.NoError(b, m.Put(k, v, 2e9))
				buf, err := state.Append(key.Append(nil, k), v)
				require.NoError(b, err)
				raw += len(buf)
			}
			prev := w.commit.Operators[0].Partitions[0]
			s := vfs.NewObjects()
			op, err := store.NewOperator(store.Config[string, int64]{
				Store: s, Root: checkpoint.OpenRoot(s), Operator: operator(1), Key: key, State: state, Put: s.PutIfAbsent, Term: 1,
			})
			require.NoError(b, err)
			size := int64(0)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				pc, err := op.WriteDelta(context.Background(), 0, uint64(i)+2, 2e9, prev, m, false)
				if err != nil {
					b.Fatal(err)
				}
				size = pc.Size
				if err := s.Delete(context.Background(), checkpoint.StateFolder(1, 0, 0)+pc.File); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(changed), "ns/key")
			b.ReportMetric(float64(size)/float64(changed), "B/key")
			b.ReportMetric(float64(size)/float64(raw), "size/encoding")
		})
	}
}

// Design: what a commit writes is at most 1.3 times the encoding of what changed.
func TestBytesAtCommit(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 1, 1)
	c := change{}
	raw := 0
	key, state := codecs(t)
	for i := range 1000 {
		c[benchKey(i)] = set(int64(i))
		b, err := state.Append(key.Append(nil, benchKey(i)), int64(i))
		require.NoError(t, err)
		raw += len(b)
	}
	w.epoch(c)
	size := w.commit.Operators[0].Partitions[0].Size
	require.LessOrEqual(t, float64(size), 1.3*float64(raw))
}
