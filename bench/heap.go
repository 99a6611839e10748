package main

import (
	"runtime"
	"time"
)

// measureHeap gives the heap bytes per key at rest: strings of 16 bytes to int64, one version, an idle timeout on.
func measureHeap(o options) (sample, error) {
	d := newData(o, manyKeys, 10_000)
	keys := d.all()
	before := liveHeap()
	s, err := newStepper(1000 * time.Second)
	if err != nil {
		return sample{}, err
	}
	for _, in := range keys.chunks(d.perBatch) {
		if err := s.step(in); err != nil {
			return sample{}, err
		}
	}
	for range 3 { // the versions of the load, their outputs and undo go
		if err := s.step(records{}); err != nil {
			return sample{}, err
		}
	}
	ours := float64(liveHeap()-before) / float64(d.n)
	before = liveHeap()
	bare := newBareMap(d)
	bare.out = nil
	base := float64(liveHeap()-before) / float64(d.n)
	runtime.KeepAlive(s)
	runtime.KeepAlive(keys)
	runtime.KeepAlive(bare)
	return sample{Figures: map[string]float64{
		"ratio": ours, "keys": float64(d.n), "base_map_bytes_per_key": base, "ratio_to_bare_map": ours / base,
	}}, nil
}

// liveHeap is the heap in use after two collections (the second frees what finalizers and pools let go).
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
