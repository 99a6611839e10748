package dstream

import (
	"encoding/json"
	"math"
	"strings"
	"time"
)

// MarshalJSON gives the progress as one JSON object. It has all names of Spark's
// StreamingQueryProgress, with their meaning:
//
//   - id, runId: root of the checkpoint and run; "" without one. name: null
//   - timestamp: start of the batch, in UTC; batchId: the epoch
//   - batchDuration: milliseconds
//   - numInputRows, inputRowsPerSecond (per interval), processedRowsPerSecond (per
//     processing time; 0 if that is 0)
//   - durationMs: latestOffset and walCommit (asking the sources for the plan, making it
//     durable), addBatch (compute and outputs), its parts compute and output,
//     commitOffsets, triggerExecution (the whole); queryPlanning and getBatch are 0, as
//     a job is planned once, at its start
//   - eventTime: watermark, once there is one
//   - stateOperators: operatorName, numRowsTotal, numRowsUpdated, allUpdatesTimeMs,
//     numRowsRemoved, allRemovalsTimeMs, commitTimeMs, memoryUsedBytes,
//     numRowsDroppedByWatermark (0: no operator drops rows), numShufflePartitions,
//     numStateStoreInstances (the same), customMetrics (calls, inserted, timedOut,
//     skipped: those that are not 0; left out if there are none). Updates and removals are
//     sums over partitions
//   - sources: description, startOffset, endOffset, latestOffset (all by partition; the
//     last is null of a source that does not report), numInputRows, both rates, metrics
//     (rate, limit, limitBytes, duplicates, gaps, skipped, deadLetters, retries: those that
//     are not 0)
//   - sink: description (the names of the outputs), numOutputRows (of exactly-once sinks;
//     -1 if there is none), metrics (none)
//   - observedMetrics: the counters, by name, each with added and total
//
// and names of its own:
//
//   - batchTime, batchInterval; redo: true if an earlier run had planned the epoch
//   - schedulingDelayMs, totalDelayMs, skippedRecords, deadLetters (left out if 0),
//     skippedTicks, queued
//   - of a source that reports lag and lastProgress (by partition), stalled (partitions),
//     uncommitted (offsets behind open transactions) and heldMs (for how long they have
//     stood there), both by partition where there are some, warnings, and in metrics its
//     counters and min-, max- and avgOffsetsBehindLatest
//   - outputs: name, kind, attempts, durationMs, numOutputRows (of exactly-once sinks)
//   - checkpoint: the fields of CheckpointProgress; left out without one
//
// Of Spark's names only avg, max and min of eventTime are never there, as no operator
// looks at event times.
//
// Milliseconds are numbers with a fraction. New names may be added.
func (p Progress) MarshalJSON() ([]byte, error) {
	out := progressJSON{
		ID: p.Checkpoint.Root, RunID: p.Checkpoint.Run,
		Timestamp: p.Batch.Time.Add(p.SchedulingDelay).UTC(), BatchTime: p.Batch.Time.UTC(), BatchID: p.Batch.Epoch, Redo: p.Redo,
		BatchDuration: ms(p.ProcessingDelay), Interval: ms(p.Interval), ratesJSON: ratesOf(p.InputRows, &p),
		Durations: durationsJSON{
			LatestOffset: ms(p.Phases.Plan - p.Phases.PlanCommit), WALCommit: ms(p.Phases.PlanCommit), AddBatch: ms(p.Phases.Compute + p.Phases.Output), Compute: ms(p.Phases.Compute),
			Output: ms(p.Phases.Output), CommitOffsets: ms(p.Phases.Commit), TriggerExecution: ms(p.ProcessingDelay),
		},
		SchedulingDelay: ms(p.SchedulingDelay), TotalDelay: ms(p.TotalDelay),
		SkippedRecords: p.SkippedRecords, DeadLetters: p.DeadLetters, SkippedTicks: p.SkippedTicks, Queued: p.Queued, ClockHolds: p.ClockHolds,
		EventTime: map[string]time.Time{}, Operators: []operatorJSON{}, Sources: []sourceJSON{}, Outputs: []outputJSON{},
		Sink: sinkOf(p.Outputs), Observed: map[string]CounterProgress{},
	}
	if !p.Batch.Watermark.IsZero() {
		out.EventTime["watermark"] = p.Batch.Watermark.UTC()
	}
	if !p.HeldUntil.IsZero() {
		until := p.HeldUntil.UTC()
		out.HeldUntil = &until
	}
	for _, o := range p.Operators {
		out.Operators = append(out.Operators, operatorJSON{
			Name: o.Name, Rows: o.Keys, Updated: o.Changed - o.Removed, UpdatesTime: ms(o.Updates), Removed: o.Removed,
			RemovalsTime: ms(o.Removals), CommitTime: ms(o.Commit),
			Memory: max(o.MemoryBytes, o.HeapBytes), Partitions: o.Partitions, Instances: o.Partitions,
			Custom: notZero(map[string]float64{"calls": float64(o.Calls), "inserted": float64(o.Inserted), "timedOut": float64(o.TimedOut), "skipped": float64(o.Skipped)}),
		})
	}
	for _, s := range p.Sources {
		j := sourceJSON{Description: s.Name, Start: map[string]int64{}, End: map[string]int64{}, ratesJSON: ratesOf(s.InputRows, &p),
			Metrics: notZero(map[string]float64{"rate": s.Rate, "limit": float64(s.Limit), "limitBytes": float64(s.LimitBytes), "duplicates": float64(s.Duplicates),
				"gaps": float64(s.Gaps), "skipped": float64(s.Skipped), "deadLetters": float64(s.DeadLetters), "retries": float64(s.Retries)})}
		for _, r := range s.Ranges {
			j.Start[r.Partition], j.End[r.Partition] = r.From, r.Until
		}
		j.reports(&s)
		out.Sources = append(out.Sources, j)
	}
	for _, o := range p.Outputs {
		out.Outputs = append(out.Outputs, outputJSON{o.Name, o.Kind, o.Attempts, ms(o.Duration), o.Rows})
	}
	for _, c := range p.Counters {
		out.Observed[c.Name] = c
	}
	if p.Checkpoint != (CheckpointProgress{}) {
		out.Checkpoint = &p.Checkpoint
	}
	return json.Marshal(out)
}

type progressJSON struct {
	ID            string    `json:"id"`
	RunID         string    `json:"runId"`
	Name          *string   `json:"name"` // a job has none
	Timestamp     time.Time `json:"timestamp"`
	BatchTime     time.Time `json:"batchTime"`
	BatchID       uint64    `json:"batchId"`
	Redo          bool      `json:"redo,omitempty"`
	BatchDuration float64   `json:"batchDuration"`
	Interval      float64   `json:"batchInterval"`
	ratesJSON
	Durations       durationsJSON              `json:"durationMs"`
	SchedulingDelay float64                    `json:"schedulingDelayMs"`
	TotalDelay      float64                    `json:"totalDelayMs"`
	SkippedRecords  int64                      `json:"skippedRecords"`
	DeadLetters     int64                      `json:"deadLetters,omitempty"`
	SkippedTicks    int64                      `json:"skippedTicks"`
	Queued          int                        `json:"queued"`
	ClockHolds      int64                      `json:"clockHolds,omitempty"`
	HeldUntil       *time.Time                 `json:"heldUntil,omitempty"`
	EventTime       map[string]time.Time       `json:"eventTime"`
	Operators       []operatorJSON             `json:"stateOperators"`
	Sources         []sourceJSON               `json:"sources"`
	Sink            sinkJSON                   `json:"sink"`
	Outputs         []outputJSON               `json:"outputs"`
	Observed        map[string]CounterProgress `json:"observedMetrics"`
	Checkpoint      *CheckpointProgress        `json:"checkpoint,omitempty"`
}

type ratesJSON struct {
	Rows      int64   `json:"numInputRows"`
	Input     float64 `json:"inputRowsPerSecond"`
	Processed float64 `json:"processedRowsPerSecond"`
}

type durationsJSON struct {
	LatestOffset     float64 `json:"latestOffset"`
	QueryPlanning    float64 `json:"queryPlanning"`
	GetBatch         float64 `json:"getBatch"`
	WALCommit        float64 `json:"walCommit"`
	AddBatch         float64 `json:"addBatch"`
	Compute          float64 `json:"compute"`
	Output           float64 `json:"output"`
	CommitOffsets    float64 `json:"commitOffsets"`
	TriggerExecution float64 `json:"triggerExecution"`
}

type operatorJSON struct {
	Name         string             `json:"operatorName"`
	Rows         int64              `json:"numRowsTotal"`
	Updated      int64              `json:"numRowsUpdated"`
	UpdatesTime  float64            `json:"allUpdatesTimeMs"`
	Removed      int64              `json:"numRowsRemoved"`
	RemovalsTime float64            `json:"allRemovalsTimeMs"`
	CommitTime   float64            `json:"commitTimeMs"`
	Memory       int64              `json:"memoryUsedBytes"`
	Dropped      int64              `json:"numRowsDroppedByWatermark"`
	Partitions   int                `json:"numShufflePartitions"`
	Instances    int                `json:"numStateStoreInstances"`
	Custom       map[string]float64 `json:"customMetrics,omitempty"`
}

type sourceJSON struct {
	Description string           `json:"description"`
	Start       map[string]int64 `json:"startOffset"`
	End         map[string]int64 `json:"endOffset"`
	Latest      map[string]int64 `json:"latestOffset"`
	ratesJSON
	Metrics map[string]float64 `json:"metrics"`

	// Of a source that reports, as is Latest.
	Lag      map[string]int64     `json:"lag,omitempty"`
	Progress map[string]time.Time `json:"lastProgress,omitempty"`
	Stalled  []string             `json:"stalled,omitempty"`
	Open     map[string]int64     `json:"uncommitted,omitempty"`
	Held     map[string]float64   `json:"heldMs,omitempty"`
	Warnings []string             `json:"warnings,omitempty"`
}

// reports fills in what the source told of itself.
func (j *sourceJSON) reports(s *SourceProgress) {
	if !s.Reports {
		return
	}
	j.Warnings, j.Latest, j.Lag, j.Progress = s.Warnings, map[string]int64{}, map[string]int64{}, map[string]time.Time{}
	least, most, sum := int64(math.MaxInt64), int64(0), int64(0)
	for _, r := range s.Ranges {
		j.Latest[r.Partition], j.Lag[r.Partition] = r.End, r.Lag
		if !r.LastProgress.IsZero() {
			j.Progress[r.Partition] = r.LastProgress.UTC()
		}
		if r.Stalled {
			j.Stalled = append(j.Stalled, r.Partition)
		}
		if n := r.Written - r.End; n > 0 {
			if j.Open == nil {
				j.Open, j.Held = map[string]int64{}, map[string]float64{}
			}
			j.Open[r.Partition], j.Held[r.Partition] = n, ms(r.Held)
		}
		least, most, sum = min(least, r.Lag), max(most, r.Lag), sum+r.Lag
	}
	for name, n := range s.Counters {
		j.Metrics[name] = float64(n)
	}
	if n := len(s.Ranges); n > 0 {
		j.Metrics["minOffsetsBehindLatest"], j.Metrics["maxOffsetsBehindLatest"] = float64(least), float64(most)
		j.Metrics["avgOffsetsBehindLatest"] = float64(sum) / float64(n)
	}
}

// sinkOf sums up the outputs.
func sinkOf(outputs []OutputProgress) sinkJSON {
	s := sinkJSON{Rows: -1, Metrics: map[string]float64{}}
	var names []string
	for _, o := range outputs {
		names = append(names, o.Name)
		if o.Kind == "Output" {
			s.Rows = max(s.Rows, 0) + o.Rows
		}
	}
	s.Description = strings.Join(names, ", ")
	return s
}

type sinkJSON struct {
	Description string             `json:"description"`
	Rows        int64              `json:"numOutputRows"`
	Metrics     map[string]float64 `json:"metrics"`
}

type outputJSON struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	Attempts int     `json:"attempts"`
	Duration float64 `json:"durationMs"`
	Rows     int64   `json:"numOutputRows,omitempty"`
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func ratesOf(rows int64, p *Progress) ratesJSON {
	r := ratesJSON{Rows: rows}
	if p.Interval > 0 {
		r.Input = float64(rows) / p.Interval.Seconds()
	}
	if p.ProcessingDelay > 0 {
		r.Processed = float64(rows) / p.ProcessingDelay.Seconds()
	}
	return r
}

// notZero leaves out what is 0.
func notZero(m map[string]float64) map[string]float64 {
	for k, v := range m {
		if v == 0 {
			delete(m, k)
		}
	}
	return m
}
