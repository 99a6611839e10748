package partitioner

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Murmur2 returns the partitioner of Kafka's Java client: murmur2 of the key's
// bytes with the sign bit cleared, modulo n. State partitioned with it lines up
// with topics that Java (and librdkafka's murmur2_random) producers filled.
// Kafka spreads records without key by other means; here the empty key is a key.
func Murmur2(n int) Partitioner[string] { return murmur{n} }

type murmur struct{ n int }

// Partitions is the number of partitions.
func (p murmur) Partitions() int { return p.n }

// Partition is the one that Kafka's default partitioner gives the key's bytes.
func (p murmur) Partition(key string) int {
	if p.n < 1 {
		return 0
	}
	b := unsafe.Slice(unsafe.StringData(key), len(key)) // read only
	return int(murmur2(b)&0x7fffffff) % p.n
}

// Equal is true of every Murmur2 with as many partitions.
func (p murmur) Equal(other Partitioner[string]) bool {
	o, ok := other.(murmur)
	return ok && o == p
}

// String is the partitioner's name and number, as checkpoints store it.
func (p murmur) String() string { return fmt.Sprintf("murmur2(%d)", p.n) }

// murmur2 is the 32-bit MurmurHash2 with the seed of Kafka's Java client.
func murmur2(b []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := uint32(seed) ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b)
		k *= m
		k ^= k >> r
		k *= m
		h *= m
		h ^= k
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(b[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	h ^= h >> 15
	return h
}
