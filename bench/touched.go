package main

import "github.com/statemill/statemill/dstream"

// touchedShare is the share of the keys that a small batch touches, as one in so many.
const touchedShare = 100

// measureTouched gives the processor time of a batch that has a record of 1 % of the keys over that of one that has a
// record of each: of mapWithState, which is judged, and of updateStateByKey, which calls its function for every key in
// every batch whatever comes.
func measureTouched(o options) (sample, error) {
	d := newData(o, manyKeys, batchSize)
	mapped := buildEngine(1, 1)
	if err := mapped.ssc.Start(); err != nil {
		return sample{}, err
	}
	updated, err := newPairJob(1, func(in dstream.Stream[pair]) dstream.Stream[pair] {
		return dstream.UpdateStateByKey(in, addAll, dstream.NumPartitions(1))
	})
	if err != nil {
		return sample{}, err
	}
	sides := []struct {
		name string
		side
		small int // batches, for a time that can be measured
	}{{"map_with_state", mapped, 20}, {"update_state_by_key", updated, 1}}
	ms := map[string][]float64{} // of a batch
	for run := range o.runs + 1 {
		all, chunks := d.all(), d.all().chunks(max(d.n/touchedShare, 1))
		for turn := range sides {
			s := sides[(run+turn)%len(sides)]
			full, err := meter(1, func() error { return s.batch(all) })
			if err != nil {
				return sample{}, err
			}
			small, err := meter(s.small, func() error {
				for _, in := range chunks[:s.small] {
					if err := s.batch(in); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return sample{}, err
			}
			if run > 0 { // the first one fills the state
				ms[s.name+"_all"] = append(ms[s.name+"_all"], full.CPU/1e6)
				ms[s.name+"_some"] = append(ms[s.name+"_some"], small.CPU/1e6)
			}
		}
	}
	figures := map[string]float64{"keys": float64(d.n), "keys_touched": float64(max(d.n/touchedShare, 1))}
	for _, s := range sides {
		all, some := median(ms[s.name+"_all"]), median(ms[s.name+"_some"])
		figures[s.name+"_all_cpu_ms"], figures[s.name+"_some_cpu_ms"] = all, some
		figures[s.name+"_ratio"] = some / all
	}
	figures["ratio"] = figures["map_with_state_ratio"]
	if err := mapped.close(); err != nil {
		return sample{}, err
	}
	return sample{Figures: figures}, updated.close()
}

// addAll is the function of updateStateByKey.
func addAll(values []int64, sum dstream.Option[int64]) dstream.Option[int64] {
	total := sum.OrElse(0)
	for _, v := range values {
		total += v
	}
	return dstream.Some(total)
}
