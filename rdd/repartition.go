package rdd

import (
	"fmt"
	"math/bits"
)

// Repartition spreads the records of every source partition in turn over n
// partitions, beginning where Spark does (a pseudo-random target that depends on
// the source's number and n alone). A target has the rows of source 0 first, then 1, ….
func Repartition[T any](r *RDD[T], n int) *RDD[T] {
	if err := faultOf(r, "repartition"); err != nil {
		return failed[T](err)
	}
	if n < 1 {
		return failed[T](fmt.Errorf("repartition to %d: %w", n, ErrPartitions))
	}
	s := newStore("repartition", r.n, n, chunkReset[T]())
	stage := s.stage("repartition", r.deps, func(t *Task) error {
		return newChunkWriter(t, s, t.Partition, 0, n, (sparkStart(t.Partition, n)+1)%n).fill(r)
	})
	out := readChunks(s, n, "repartition")
	out.exec = r.exec
	out.deps, out.res = []*Stage{stage}, []Resource{s.life}
	return out
}

// sparkStart is the position from which Spark's coalesce with shuffle counts on:
// the first nextInt(n) of java.util.Random seeded with the scrambled index.
func sparkStart(index, n int) int {
	const multiplier = 0x9e3775cd
	h := bits.ReverseBytes32(uint32(index)*multiplier) * multiplier
	return int(javaNextInt(int64(int32(h)), int32(n)))
}

// javaNextInt is new java.util.Random(seed).nextInt(bound).
func javaNextInt(seed int64, bound int32) int32 {
	const mask = 1<<48 - 1
	s := (uint64(seed) ^ 0x5DEECE66D) & mask
	next := func() int32 {
		s = (s*0x5DEECE66D + 0xB) & mask
		return int32(s >> 17)
	}
	u := next()
	if bound&(bound-1) == 0 {
		return int32(int64(bound) * int64(u) >> 31)
	}
	for {
		v := u % bound
		if u-v+(bound-1) >= 0 { // an int32 overflow marks the biased tail
			return v
		}
		u = next()
	}
}
