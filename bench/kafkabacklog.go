package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
	"unsafe"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
)

// A backlog is a topic of large records, many times the memory that the job may use.
type backlog struct {
	bytes  int64
	budget int64
}

const (
	// backlogPartitions and backlogRecord are the shape of the topic.
	backlogPartitions = 8
	backlogRecord     = 100 << 10
	// backlogKeys is how many keys the job has: its state takes next to nothing.
	backlogKeys = 1000
)

func newBacklog(o options) backlog {
	if o.quick {
		return backlog{48 << 20, 8 << 20}
	}
	return backlog{int64(o.backlog) << 20, 64 << 20}
}

func (b backlog) records() int { return int(b.bytes / backlogRecord) }

// fillBacklog writes records that do not compress to nothing, a few at a time. The broker keeps them as they are.
func fillBacklog(o options) func(emit func(lines) error) error {
	return func(emit func(lines) error) error {
		n := newBacklog(o).records()
		const atOnce = 32
		for i := 0; i < n; i += atOnce {
			var in lines
			for j := i; j < min(i+atOnce, n); j++ {
				buf := make([]byte, backlogRecord)
				at := copy(buf, fmt.Sprintf("key-%d ", j%backlogKeys))
				for seed := uint32(j) + 1; at < len(buf); at++ {
					seed = seed*1664525 + 1013904223
					buf[at] = 'a' + byte(seed>>24)%26
				}
				in = append(in, unsafe.String(&buf[0], len(buf)))
			}
			if err := emit(in); err != nil {
				return err
			}
		}
		return nil
	}
}

// measureBacklog gives the greatest heap of a job that works off the backlog, over its budget. The records themselves go
// through the shuffle into mapWithState, so a whole batch is in memory, and at most one more: a batch gets half of the
// budget (kafka.MaxBatchBytes).
//
// The heap is what runtime/metrics calls objects, garbage that was not collected yet included; it is collected at 20 % of
// growth, as a program with a budget would. What the process had from the system at most is told beside it.
func measureBacklog(o options) (sample, error) {
	b := newBacklog(o)
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	before := float64(liveHeap())
	var largest, read int64
	records, batches := 0, 0
	d := newDriver(counterCores, dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) {
		if p.InputRows > 0 {
			batches++
		}
		largest = max(largest, p.InputRows*backlogRecord)
		records += int(p.InputRows)
	}}))
	in := kafka.DirectStream(d.ssc, "backlog", kafka.Brokers(o.topic.seeds()...), kafka.Topics(o.topic.Name), kafka.FromEarliest(),
		kafka.MaxBatchBytes(b.budget/2))
	keyed := dstream.MapPair(in, func(r kafka.Record) (string, kafka.Record) {
		word, _, _ := strings.Cut(r.Text(), " ")
		return word, r
	})
	sizes := dstream.MapWithState(keyed, dstream.Function(func(_ string, r dstream.Option[kafka.Record], s *dstream.State[int64]) int64 {
		n := int64(len(r.OrElse(kafka.Record{}).Value))
		s.Update(s.OrElse(0) + n)
		return n
	}).Named("bytes"))
	out := newSink[int64](counterCores)
	dstream.ForeachRDD(sizes, out.collect)
	var peak float64
	stop := watchHeap(&peak)
	began := time.Now()
	err := d.ssc.Start()
	for idle := 0; err == nil && records < b.records() && idle < 100; idle++ {
		was := records
		if err = d.tick(); records > was {
			idle = 0
		}
		for _, part := range out {
			for _, n := range part {
				read += n
			}
		}
	}
	took := time.Since(began)
	stop()
	if err != nil {
		return sample{}, err
	}
	if want := int64(b.records()) * backlogRecord; read != want {
		return sample{}, fmt.Errorf("%d bytes were read of %d", read, want)
	}
	mib := func(n float64) float64 { return n / (1 << 20) }
	budget := float64(b.budget)
	figures := map[string]float64{
		"ratio": (peak - before) / budget, "budget_mib": mib(budget), "backlog_mib": mib(float64(read)), "peak_heap_mib": mib(peak - before),
		"largest_batch_mib": mib(float64(largest)), "batches": float64(batches), "seconds": took.Seconds(),
	}
	if resident, ok := peakResident(); ok {
		figures["peak_rss_to_budget"] = float64(resident) / budget
	}
	return sample{Figures: figures}, d.close()
}

// peakResident is the most memory that the process has had, where the system tells (Linux). It is not what getrusage
// says: that begins with the peak of the process which started this one, as it stood at the exec.
func peakResident() (bytes int64, ok bool) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &bytes); err == nil {
			return bytes << 10, true
		}
	}
	return 0, false
}
