package rdd

import "github.com/statemill/statemill/internal/sabotage"

// Keep is r with its rows kept: its stage computes r once, and the result may be
// read any number of times, side by side, until it is released (Stage.Release or
// Release) and nobody retains it. Order, partitions and partitioner are r's.
func Keep[T any](r *RDD[T]) *RDD[T] {
	if err := faultOf(r, "keep"); err != nil {
		return failed[T](err)
	}
	name := r.label.name
	s := newStore(name, r.n, r.n, chunkReset[T]())
	stage := s.stage("keep "+name, r.deps, func(t *Task) error {
		return newChunkWriter(t, s, t.Partition, t.Partition, 1, 0).fill(r)
	})
	out := readChunks(s, r.n, name)
	if sabotage.On("kept-not-kept") {
		out.compute = r.compute
	}
	out.label, out.part, out.exec, out.input = r.label, r.part, r.exec, r.input
	out.deps, out.res = []*Stage{stage}, []Resource{s.life}
	return out
}
