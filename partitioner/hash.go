package partitioner

import (
	"fmt"

	"github.com/statemill/statemill/codec"
)

// Hash returns the default partitioner over n partitions. It is a [Hasher].
// Any n and any K are taken; [Check] reports a bad one, and until then every
// key of a bad one is in partition 0.
func Hash[K comparable](n int) Partitioner[K] {
	p := &hash[K]{n: n}
	key, err := codec.KeyFor[K]()
	if err != nil {
		p.err = err
		p.hash = func(K) uint64 { return 0 }
		return p
	}
	p.hash = key.HashFunc()
	return p
}

type hash[K comparable] struct {
	n    int
	hash func(K) uint64
	err  error
}

// Partitions is the number of partitions.
func (p *hash[K]) Partitions() int { return p.n }

// Partition is that of the key's stable hash.
func (p *hash[K]) Partition(key K) int { return p.PartitionHash(p.hash(key)) }

// Hash is the key's stable hash.
func (p *hash[K]) Hash(key K) uint64 { return p.hash(key) }

// HashFunc is Hash as a function, for loops.
func (p *hash[K]) HashFunc() func(K) uint64 { return p.hash }

// PartitionHash scales the high 32 bits to n: no division, and the low bits
// stay independent of the partition for the state map to use.
func (p *hash[K]) PartitionHash(h uint64) int {
	return int((h >> 32) * uint64(max(p.n, 0)) >> 32)
}

// Equal is true of every Hash with as many partitions.
func (p *hash[K]) Equal(other Partitioner[K]) bool {
	o, ok := other.(*hash[K])
	return ok && o.n == p.n
}

// String is the partitioner's name and number, as checkpoints store it.
func (p *hash[K]) String() string { return fmt.Sprintf("hash(%d)", p.n) }

func (p *hash[K]) check() error { return p.err }
