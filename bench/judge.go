package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// A bench is one speed target.
type bench struct {
	name, about string
	// ratio is the name of the figure in the JSON line.
	ratio string
	// target is the greatest figure that meets the target; 0 for a figure that is only to be read.
	target float64
	// cores is GOMAXPROCS of the processes; 0 leaves the default. With 2, wall time counts.
	cores int
	// maxProcs and maxRuns, where they are not 0, keep a benchmark short whatever the flags say.
	maxProcs, maxRuns int
	// input fills the topic of a Kafka benchmark.
	input  func(o options) func(emit func(lines) error) error
	layout layout
	// measure runs in a process of its own.
	measure func(o options) (sample, error)
}

// busyCores is the least that a side of a two-core run must keep busy, else the run says more about the neighbours.
const busyCores = 1.7

// judge makes the JSON line of a benchmark from the samples of its processes.
func (b *bench) judge(samples []sample, o options) map[string]any {
	line := map[string]any{"bench": b.name, "processes": len(samples), "runs": o.runs}
	var ratios []float64
	if len(samples[0].Ours) > 0 {
		ratios = b.compare(line, samples)
	} else {
		ratios = figures(line, samples)
	}
	r := median(ratios)
	line[b.ratio] = round(r)
	if b.target > 0 {
		line["target"], line["met"] = b.target, r <= b.target
	}
	line["range"] = rounded([]float64{quantile(ratios, 0), quantile(ratios, 1)})
	line["of_processes"] = rounded(ratios)
	if o.quick {
		line["quick"] = true
	}
	return line
}

// format writes a line as JSON: what matters first, the rest by name.
func (b *bench) format(line map[string]any) ([]byte, error) {
	first := []string{"bench", b.ratio, "target", "met", "void", "range", "of_processes"}
	names := append(first, slices.DeleteFunc(slices.Sorted(maps.Keys(line)), func(name string) bool {
		return slices.Contains(first, name)
	})...)
	out := bytes.NewBufferString("{")
	for _, name := range names {
		value, ok := line[name]
		if !ok {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.WriteString(`"` + name + `":`)
		out.Write(text)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// compare gives each process's ratio of the two sides and puts both sides' numbers into the line.
func (b *bench) compare(line map[string]any, samples []sample) []float64 {
	wall := func(c cost) float64 { return c.Wall }
	cpu := func(c cost) float64 { return c.CPU }
	judged, other, unit := cpu, wall, "cpu"
	if b.cores == 2 {
		judged, other, unit = wall, cpu, "wall"
	}
	var ratios, others []float64
	var ours, base []cost
	var oursRuns, baseRuns [][]float64
	for _, s := range samples {
		ratios = append(ratios, median(each(s.Ours, judged))/median(each(s.Base, judged)))
		others = append(others, median(each(s.Ours, other))/median(each(s.Base, other)))
		ours, base = append(ours, s.Ours...), append(base, s.Base...)
		oursRuns = append(oursRuns, rounded(each(s.Ours, judged)))
		baseRuns = append(baseRuns, rounded(each(s.Base, judged)))
	}
	line["judged_on"] = unit
	line["ratio_of_"+map[string]string{"cpu": "wall", "wall": "cpu"}[unit]] = round(median(others))
	for _, side := range []struct {
		name  string
		costs []cost
		runs  [][]float64
	}{{"ours", ours, oursRuns}, {"base", base, baseRuns}} {
		line[side.name+"_ns_wall"] = round(median(each(side.costs, wall)))
		line[side.name+"_ns_cpu"] = round(median(each(side.costs, cpu)))
		line[side.name+"_cpu_per_wall"] = round(median(each(side.costs, cost.cores)))
		line[side.name+"_allocs_per_record"] = round(median(each(side.costs, func(c cost) float64 { return c.Allocs })))
		line[side.name+"_ns_of_runs"] = side.runs
	}
	if b.cores == 2 {
		line["void"] = median(each(ours, cost.cores)) < busyCores || median(each(base, cost.cores)) < busyCores
	}
	return ratios
}

// figures gives each process's "ratio" and puts the medians of all other figures into the line.
func figures(line map[string]any, samples []sample) []float64 {
	for name := range samples[0].Figures {
		if name == "ratio" {
			continue
		}
		var all []float64
		for _, s := range samples {
			all = append(all, s.Figures[name])
		}
		line[name] = round(median(all))
	}
	var ratios []float64
	for _, s := range samples {
		ratios = append(ratios, s.Figures["ratio"])
	}
	return ratios
}
