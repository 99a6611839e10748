package main

import (
	"hash/maphash"
	"strings"
	"sync"
)

// An output is what the function of both sides emits.
type output struct {
	key string
	sum int64
}

// bareMap is the baseline on one core: a plain map, read, written, and the output appended. It has no versions.
type bareMap struct {
	m   map[string]int64
	out []output
}

// newBareMap grows the map by one full pass. Keys are cloned as our side clones them, or they would pin the input.
func newBareMap(d *data) *bareMap {
	b := &bareMap{m: map[string]int64{}, out: make([]output, 0, d.perBatch)}
	for _, k := range d.all().keys {
		b.m[strings.Clone(k)] = 0
	}
	return b
}

func (b *bareMap) batch(in records) error {
	b.out = b.out[:0]
	values := in.values[:len(in.keys)]
	for i, k := range in.keys {
		sum := b.m[k] + values[i]
		b.m[k] = sum
		b.out = append(b.out, output{k, sum})
	}
	return nil
}

// A record is what the sharded baseline sends.
type record struct {
	key   string
	value int64
}

// chunkSize is the number of records that the sharded baseline sends at once.
const chunkSize = 1024

// shardedMap is the baseline on two cores: one producer hashes each record once and sends slices of 1024 records to the
// two owners of the maps, who read, write and append the output. Slices are used again.
type shardedMap struct {
	seed   maphash.Seed
	owners [2]owner
	free   chan []record
}

// An owner holds half of the keys.
type owner struct {
	m   map[string]int64
	out []output
}

// newShardedMap grows the maps by one full pass.
func newShardedMap(d *data) *shardedMap {
	s := &shardedMap{seed: maphash.MakeSeed(), free: make(chan []record, 64)}
	for i := range s.owners {
		s.owners[i] = owner{m: map[string]int64{}, out: make([]output, 0, d.perBatch)}
	}
	for _, k := range d.all().keys {
		s.owners[s.owner(k)].m[strings.Clone(k)] = 0
	}
	return s
}

func (s *shardedMap) owner(key string) int { return int(maphash.String(s.seed, key) >> 63) }

func (s *shardedMap) batch(in records) error {
	var wg sync.WaitGroup
	var to [2]chan []record
	for i := range to {
		to[i] = make(chan []record, 8)
		s.owners[i].out = s.owners[i].out[:0]
		wg.Go(func() { s.own(&s.owners[i], to[i]) })
	}
	var open [2][]record
	for i := range open {
		open[i] = s.chunk()
	}
	for i, k := range in.keys {
		o := s.owner(k)
		open[o] = append(open[o], record{k, in.values[i]})
		if len(open[o]) == chunkSize {
			to[o] <- open[o]
			open[o] = s.chunk()
		}
	}
	for i := range to {
		to[i] <- open[i]
		close(to[i])
	}
	wg.Wait()
	return nil
}

func (s *shardedMap) chunk() []record {
	select {
	case c := <-s.free:
		return c[:0]
	default:
		return make([]record, 0, chunkSize)
	}
}

func (s *shardedMap) own(o *owner, from <-chan []record) {
	for chunk := range from {
		for i := range chunk {
			r := &chunk[i]
			sum := o.m[r.key] + r.value
			o.m[r.key] = sum
			o.out = append(o.out, output{r.key, sum})
		}
		select {
		case s.free <- chunk:
		default:
		}
	}
}
