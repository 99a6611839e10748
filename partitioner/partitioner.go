// Package partitioner maps keys to partitions, the same way in every process
// and for ever.
//
// [Hash] is the default: the high 32 bits of the key's stable hash (package
// codec) times the number of partitions, shifted down, so a state map can use
// the same hash once computed. [Murmur2] puts string keys where Kafka's Java
// producer puts them. [Func] takes the user's function.
//
// Constructors never panic and return no error; [Check] reports what is wrong
// with a partitioner, all of it before the first record. The partition numbers
// of Hash and Murmur2 are part of the stored format: a golden test holds them.
package partitioner

import (
	"fmt"
	"math"
)

// A Partitioner maps keys to partitions 0..Partitions()-1. It is immutable and
// may be used from any goroutine.
type Partitioner[K comparable] interface {
	// Partitions is the number of partitions.
	Partitions() int
	// Partition gives the partition of a key. A user's function may return
	// anything; callers check the range with [Of] or by themselves with
	// [OutOfRange].
	Partition(key K) int
	// Equal reports whether other puts every key in the same partition. Data
	// partitioned by equal partitioners is joined without a shuffle.
	Equal(other Partitioner[K]) bool
	// String names the partitioner with its settings, such as "hash(8)". It is
	// stored and shown; equal partitioners have equal names.
	String() string
}

// Hasher is met by the partitioners of [Hash]: one hash of a key serves both
// partitioning and the state map.
type Hasher[K comparable] interface {
	Partitioner[K]
	// Hash is the stable 64-bit hash of key.
	Hash(key K) uint64
	// PartitionHash gives the partition of a key from its hash.
	PartitionHash(h uint64) int
	// HashFunc returns the fastest function that computes Hash.
	HashFunc() func(K) uint64
}

// checker is met by partitioners that can be faulty in themselves.
type checker interface{ check() error }

// Check reports what is wrong with p: nil, fewer than 1 partition or more than
// 2³¹−1, a key type that [Hash] cannot encode, a [Func] without function or
// name.
func Check[K comparable](p Partitioner[K]) error {
	if p == nil {
		return fmt.Errorf("partitioner: nil; give one or leave the option out")
	}
	if n := p.Partitions(); n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("partitioner: %s has %d partitions; give 1 to %d", p, n, math.MaxInt32)
	}
	if c, ok := p.(checker); ok {
		if err := c.check(); err != nil {
			return fmt.Errorf("partitioner: %s: %w", p, err)
		}
	}
	return nil
}
