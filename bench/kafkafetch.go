package main

import "math"

// fetchRecords is the number of records of the topic that clients read.
const fetchRecords = 2_000_000

// fillFetch writes the input of measureFetch.
func fillFetch(o options) func(emit func(lines) error) error {
	return func(emit func(lines) error) error {
		d := newData(o, manyKeys, batchSize)
		for range fetchRecords / batchSize {
			if err := emit(d.next().lines()); err != nil {
				return err
			}
		}
		return nil
	}
}

// measureFetch compares the clients: each reads the whole topic, connecting included, one after the other, and all of
// them again in another order.
func measureFetch(o options) (sample, error) {
	n := fetchRecords / batchSize * newData(o, manyKeys, batchSize).perBatch
	clients := []struct {
		name string
		read func(topic, int) error
	}{{"ours", readStatemill}, {"kafka_go_reader", readKafkaGo}, {"franz_go", readFranz}}
	costs := map[string][]cost{}
	for run := range o.runs {
		for turn := range clients {
			c := clients[(run+turn)%len(clients)]
			spent, err := o.meter(c.name, run, n, func() error { return c.read(o.topic, n) })
			if err != nil {
				return sample{}, err
			}
			costs[c.name] = append(costs[c.name], spent)
		}
	}
	s := sample{Figures: map[string]float64{"records": float64(n)}}
	fastest := math.Inf(1)
	for _, c := range clients {
		cpu := s.side(c.name, costs[c.name])
		if c.name != "ours" {
			fastest = min(fastest, cpu)
		}
	}
	s.Figures["ratio"] = s.Figures["ours_ns_cpu"] / fastest
	return s, nil
}

// side puts the medians of one side's runs into the figures and returns the CPU time.
func (s *sample) side(name string, costs []cost) float64 {
	cpu := median(each(costs, func(c cost) float64 { return c.CPU }))
	s.Figures[name+"_ns_cpu"] = cpu
	s.Figures[name+"_ns_wall"] = median(each(costs, func(c cost) float64 { return c.Wall }))
	s.Figures[name+"_allocs_per_record"] = median(each(costs, func(c cost) float64 { return c.Allocs }))
	return cpu
}
