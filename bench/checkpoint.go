package main

import (
	"encoding/binary"
	"errors"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/statemill/statemill/dstream"
)

// encoding is the least that changed entries can be written in without knowing the others: key and state, each as the
// codec writes it (length and bytes; a varint).
func encoding(in records, state int64) float64 {
	var varint [binary.MaxVarintLen64]byte
	entry := 1 + keySize + binary.PutVarint(varint[:], state)
	distinct := make(map[string]bool, in.len())
	for _, k := range in.keys {
		distinct[k] = true
	}
	return float64(len(distinct) * entry)
}

// measureCommitBytes compares the bytes written at a commit with the encoding of what changed: 1M keys, 1 % of them
// changed in a batch; and other shares, for the record.
func measureCommitBytes(o options) (s sample, err error) {
	p, err := newPlace()
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	d := newData(o, manyKeys, batchSize)
	var t traffic
	e, _, err := p.open(2, 2, time.Time{}, &t, nil, dstream.SnapshotEvery(1_000_000), dstream.SnapshotBySize(false))
	if err != nil {
		return s, err
	}
	if err := e.fill(d); err != nil {
		return s, err
	}
	s.Figures = map[string]float64{}
	for _, share := range []struct {
		name    string
		divisor int
	}{{"10_percent", 10}, {"1_percent", 100}, {"a_thousandth", 1000}, {"a_ten_thousandth", 10_000}} {
		part := *d
		part.perBatch = max(1, d.n/share.divisor)
		var wrote, least, took []float64
		for range 3 * o.runs {
			in := part.next()
			before := t.commits()
			ms, err := timed(func() error { return e.batch(in) })
			if err != nil {
				return s, err
			}
			wrote = append(wrote, float64(t.commits()-before))
			least = append(least, encoding(in, 2))
			took = append(took, ms)
		}
		s.Figures["bytes_"+share.name] = median(wrote)
		s.Figures["ms_"+share.name] = median(took)
		ratio := median(wrote) / median(least)
		s.Figures["ratio_"+share.name] = ratio
		if share.name == "1_percent" {
			s.Figures["ratio"] = ratio
		}
	}
	return s, e.close()
}

// measureDurableLatency is measureLatency with a checkpoint on the disk and the default snapshots.
func measureDurableLatency(o options) (s sample, err error) {
	p, err := newPlace()
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	d := newData(o, manyKeys, batchSize)
	var t traffic
	e, _, err := p.open(2, 2, time.Time{}, &t, nil)
	if err != nil {
		return s, err
	}
	if err := e.fill(d); err != nil {
		return s, err
	}
	small := *d
	small.perBatch = max(1, d.n/100)
	const warm = 50
	var took, base []float64
	bare := newBareMap(d) // what the machine does to a loop of the same length
	snapshots := t.snapshots.Load()
	for i := range warm + 200*o.runs {
		in := small.next()
		ms, err := timed(func() error { return e.batch(in) })
		if err != nil {
			return s, err
		}
		b, err := timed(func() error { return bare.batch(in) })
		if err != nil {
			return s, err
		}
		if i >= warm {
			took, base = append(took, ms), append(base, b)
		}
	}
	s.Figures = map[string]float64{
		"ratio": quantile(took, 0.99) / median(took), "batches": float64(len(took)), "records_per_batch": float64(small.perBatch),
		"median_ms": median(took), "p99_ms": quantile(took, 0.99), "max_ms": quantile(took, 1),
		"base_median_ms": median(base), "base_p99_ms": quantile(base, 0.99), "base_ratio": quantile(base, 0.99) / median(base),
		"snapshot_bytes_per_key": float64(t.snapshots.Load()-snapshots) / float64(d.n),
		"fsyncs_per_batch":       float64(t.syncs.Load()) / float64(warm+len(took)),
	}
	return s, e.close()
}

// stored makes a checkpoint with a snapshot of every key in one partition, and gives the batch time at which it stands.
func stored(d *data, p *place) (time.Time, error) {
	var t traffic
	e, _, err := p.open(1, 1, time.Time{}, &t, nil, dstream.SnapshotEvery(1))
	if err != nil {
		return time.Time{}, err
	}
	if err := e.fill(d); err != nil {
		return time.Time{}, err
	}
	last := uint64(len(d.all().chunks(d.perBatch)))
	if err := p.awaitSnapshots(1, last); err != nil {
		return time.Time{}, err
	}
	return e.now, e.close()
}

// measureLoad gives the processor time from the start of a run to its readiness: 1M keys from a snapshot. It also gives the greatest heap on the way over the final one, and the bytes of a key on the disk.
func measureLoad(o options) (s sample, err error) {
	p, err := newPlace()
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	d := newData(o, manyKeys, batchSize)
	at, err := stored(d, p)
	if err != nil {
		return s, err
	}
	disk, err := p.newestSize()
	if err != nil {
		return s, err
	}
	var took, used []float64
	for range o.runs {
		runtime.GC()
		r, err := p.load(at, nil)
		if err != nil {
			return s, err
		}
		took, used = append(took, float64(r.wall)/1e6), append(used, float64(r.cpu)/1e6)
	}
	var peak, final float64
	// Collected often, so that the greatest heap is what is in use and not what waits to be collected.
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	before := float64(liveHeap())
	stop := watchHeap(&peak)
	if _, err := p.load(at, func() { stop(); final = float64(liveHeap()) - before }); err != nil {
		return s, err
	}
	s.Figures = map[string]float64{
		"ratio": median(used) * 1e6 / float64(d.n), "cpu_ms": median(used), "wall_ms": median(took),
		"peak_to_final": (peak - before) / final, "final_bytes_per_key": final / float64(d.n),
		"disk_bytes_per_key": float64(disk) / float64(d.n),
	}
	return s, nil
}

// judgedBy is measureLoad, once, judged by another of its figures.
func judgedBy(figure string) func(options) (sample, error) {
	return func(o options) (sample, error) {
		o.runs = 1
		s, err := measureLoad(o)
		if err == nil {
			s.Figures["ratio"] = s.Figures[figure]
		}
		return s, err
	}
}

// load opens the checkpoint, and looks at it when it is ready.
func (p *place) load(at time.Time, look func()) (ready, error) {
	var t traffic
	e, took, err := p.open(1, 1, at, &t, nil)
	if err != nil {
		return took, err
	}
	if look != nil {
		look()
	}
	return took, e.close()
}

// newestSize is the length of the newest snapshot of partition 0.
func (p *place) newestSize() (int64, error) {
	n, err := p.newestSnapshot(0)
	if err != nil {
		return 0, err
	}
	return p.size("/0/" + uintText(n) + ".1.snapshot")
}

// watchHeap samples the heap in use until it is stopped.
func watchHeap(peak *float64) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		m := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		tick := time.NewTicker(500 * time.Microsecond)
		defer tick.Stop()
		for {
			metrics.Read(m)
			*peak = max(*peak, float64(m[0].Value.Uint64()))
			select {
			case <-end:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(end); <-done }
}
