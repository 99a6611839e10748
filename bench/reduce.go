package main

import "github.com/statemill/statemill/dstream"

// reduceBatches is the number of batches in a run of ReduceByKey and its loop.
const reduceBatches = 5

// bareReduce is what one would write by hand on one core: a map that is emptied and filled again in each batch, and its
// contents appended. The map keeps its size, so it never grows after the first batch.
type bareReduce struct {
	m   map[string]int64
	out []pair
}

func newBareReduce() *bareReduce { return &bareReduce{m: map[string]int64{}} }

func (b *bareReduce) batch(in records) error {
	clear(b.m)
	b.out = b.out[:0]
	values := in.values[:len(in.keys)]
	for i, k := range in.keys {
		b.m[k] += values[i]
	}
	for k, sum := range b.m {
		b.out = append(b.out, dstream.KV(k, sum))
	}
	return nil
}

// newReduce is the job of ReduceByKey alone.
func newReduce() (*pairJob, error) {
	return newPairJob(1, func(in dstream.Stream[pair]) dstream.Stream[pair] {
		return dstream.ReduceByKey(in, sumOf, dstream.NumPartitions(1))
	})
}

// measureReduce compares ReduceByKey in a job with the loop.
func measureReduce(keys int) func(o options) (sample, error) {
	return func(o options) (sample, error) {
		d := newData(o, keys, batchSize)
		ours, err := newReduce()
		if err != nil {
			return sample{}, err
		}
		base := newBareReduce()
		for range 2 { // pools and the map get their size
			in := d.next()
			if err := ours.batch(in); err != nil {
				return sample{}, err
			}
			if err := base.batch(in); err != nil {
				return sample{}, err
			}
		}
		s, err := interleave(o, d, reduceBatches, ours, base)
		if err != nil {
			return s, err
		}
		return s, ours.close()
	}
}
