package main

// jobBatches is the number of batches in a run of the job.
const jobBatches = 5

// measureJob compares the whole in-memory job with the sharded map loop.
func measureJob(keys int) func(o options) (sample, error) {
	return func(o options) (sample, error) {
		d := newData(o, keys, batchSize)
		base := newShardedMap(d)
		ours, err := newEngine(d, 2)
		if err != nil {
			return sample{}, err
		}
		s, err := interleave(o, d, jobBatches, ours, base)
		if err != nil {
			return s, err
		}
		return s, ours.close()
	}
}

// measureLatency gives the 99th percentile of the batch time over the median: 1M keys, 1 % of them changed in a batch.
func measureLatency(o options) (sample, error) {
	d := newData(o, manyKeys, batchSize)
	e, err := newEngine(d, 2)
	if err != nil {
		return sample{}, err
	}
	bare := newBareMap(d)
	small := *d
	small.perBatch = d.n / 100
	const warm = 50
	batches := 200 * o.runs
	var ours, base []float64
	for i := range warm + batches {
		in := small.next()
		a, err := timed(func() error { return e.batch(in) })
		if err != nil {
			return sample{}, err
		}
		b, err := timed(func() error { return bare.batch(in) })
		if err != nil {
			return sample{}, err
		}
		if i >= warm {
			ours, base = append(ours, a), append(base, b)
		}
	}
	return sample{Figures: map[string]float64{
		"ratio":   quantile(ours, 0.99) / median(ours),
		"batches": float64(batches), "records_per_batch": float64(small.perBatch),
		"ours_median_ms": median(ours), "ours_p99_ms": quantile(ours, 0.99), "ours_max_ms": quantile(ours, 1),
		"base_median_ms": median(base), "base_p99_ms": quantile(base, 0.99), "base_max_ms": quantile(base, 1),
		"base_ratio": quantile(base, 0.99) / median(base),
	}}, e.close()
}
