package dstream

import (
	"encoding/json"
	"math"
	"time"
)

// MarshalJSON gives the progress as one JSON object, with the names of Spark's
// StreamingQueryProgress where the meaning is the same:
//
//   - id, runId: root of the checkpoint and run; left out without one
//   - timestamp, batchTime: start of the batch and its time, in UTC
//   - batchId: the epoch; redo: true if an earlier run had planned it
//   - batchDuration, batchInterval: milliseconds
//   - numInputRows, inputRowsPerSecond (per interval), processedRowsPerSecond (per
//     processing time; 0 if that is 0)
//   - durationMs: latestOffset (plan), addBatch (compute and outputs), its parts
//     compute and output, commitOffsets, triggerExecution (the whole)
//   - schedulingDelayMs, totalDelayMs, skippedRecords, deadLetters (left out if 0),
//     skippedTicks, queued
//   - eventTime: watermark, once there is one
//   - stateOperators: operatorName, numRowsTotal, numRowsUpdated, numRowsRemoved,
//     memoryUsedBytes, numShufflePartitions, customMetrics (calls, inserted, timedOut,
//     skipped: those that are not 0)
//   - sources: description, startOffset, endOffset (both by partition),
//     numInputRows, both rates, metrics (rate, limit, limitBytes, duplicates, gaps,
//     skipped, deadLetters, retries: those that are not 0). Of a source that reports
//     also latestOffset, lag and lastProgress (by partition), stalled (partitions),
//     uncommitted (offsets behind open transactions) and heldMs (for how long they have
//     stood there), both by partition where there are some, warnings, and in metrics its
//     counters and min-, max- and avgOffsetsBehindLatest
//   - outputs: name, kind, attempts, durationMs, numOutputRows (of exactly-once sinks)
//   - observedMetrics: the counters, by name, each with added and total
//   - checkpoint: the fields of CheckpointProgress; left out without one
//
// Of Spark's names these are left out: name (a job has none); of durationMs
// queryPlanning and getBatch (there is no such step) and walCommit (part of
// latestOffset); of eventTime avg, max and min; of stateOperators allUpdatesTimeMs,
// allRemovalsTimeMs and commitTimeMs (operators run side by side, so that only the
// phases are measured), numRowsDroppedByWatermark (no operator drops rows) and
// numStateStoreInstances (that is numShufflePartitions); and sink, in the place of
// which are the outputs.
//
// Milliseconds are numbers with a fraction. New names may be added.
func (p Progress) MarshalJSON() ([]byte, error) {
	out := progressJSON{
		ID: p.Checkpoint.Root, RunID: p.Checkpoint.Run,
		Timestamp: p.Batch.Time.Add(p.SchedulingDelay).UTC(), BatchTime: p.Batch.Time.UTC(), BatchID: p.Batch.Epoch, Redo: p.Redo,
		BatchDuration: ms(p.ProcessingDelay), Interval: ms(p.Interval), ratesJSON: ratesOf(p.InputRows, &p),
		Durations: durationsJSON{
			LatestOffset: ms(p.Phases.Plan), AddBatch: ms(p.Phases.Compute + p.Phases.Output), Compute: ms(p.Phases.Compute),
			Output: ms(p.Phases.Output), CommitOffsets: ms(p.Phases.Commit), TriggerExecution: ms(p.ProcessingDelay),
		},
		SchedulingDelay: ms(p.SchedulingDelay), TotalDelay: ms(p.TotalDelay),
		SkippedRecords: p.SkippedRecords, DeadLetters: p.DeadLetters, SkippedTicks: p.SkippedTicks, Queued: p.Queued, ClockHolds: p.ClockHolds,
		Operators: []operatorJSON{}, Sources: []sourceJSON{}, Outputs: []outputJSON{},
	}
	if !p.Batch.Watermark.IsZero() {
		out.EventTime = map[string]time.Time{"watermark": p.Batch.Watermark.UTC()}
	}
	if !p.HeldUntil.IsZero() {
		until := p.HeldUntil.UTC()
		out.HeldUntil = &until
	}
	for _, o := range p.Operators {
		out.Operators = append(out.Operators, operatorJSON{
			Name: o.Name, Rows: o.Keys, Updated: o.Changed - o.Removed, Removed: o.Removed,
			Memory: max(o.MemoryBytes, o.HeapBytes), Partitions: o.Partitions,
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
		if out.Observed == nil {
			out.Observed = map[string]CounterProgress{}
		}
		out.Observed[c.Name] = c
	}
	if p.Checkpoint != (CheckpointProgress{}) {
		out.Checkpoint = &p.Checkpoint
	}
	return json.Marshal(out)
}

type progressJSON struct {
	ID            string    `json:"id,omitempty"`
	RunID         string    `json:"runId,omitempty"`
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
	EventTime       map[string]time.Time       `json:"eventTime,omitempty"`
	Operators       []operatorJSON             `json:"stateOperators"`
	Sources         []sourceJSON               `json:"sources"`
	Outputs         []outputJSON               `json:"outputs"`
	Observed        map[string]CounterProgress `json:"observedMetrics,omitempty"`
	Checkpoint      *CheckpointProgress        `json:"checkpoint,omitempty"`
}

type ratesJSON struct {
	Rows      int64   `json:"numInputRows"`
	Input     float64 `json:"inputRowsPerSecond"`
	Processed float64 `json:"processedRowsPerSecond"`
}

type durationsJSON struct {
	LatestOffset     float64 `json:"latestOffset"`
	AddBatch         float64 `json:"addBatch"`
	Compute          float64 `json:"compute"`
	Output           float64 `json:"output"`
	CommitOffsets    float64 `json:"commitOffsets"`
	TriggerExecution float64 `json:"triggerExecution"`
}

type operatorJSON struct {
	Name       string             `json:"operatorName"`
	Rows       int64              `json:"numRowsTotal"`
	Updated    int64              `json:"numRowsUpdated"`
	Removed    int64              `json:"numRowsRemoved"`
	Memory     int64              `json:"memoryUsedBytes"`
	Partitions int                `json:"numShufflePartitions"`
	Custom     map[string]float64 `json:"customMetrics,omitempty"`
}

type sourceJSON struct {
	Description string           `json:"description"`
	Start       map[string]int64 `json:"startOffset"`
	End         map[string]int64 `json:"endOffset"`
	ratesJSON
	Metrics map[string]float64 `json:"metrics,omitempty"`

	// Of a source that reports.
	Latest   map[string]int64     `json:"latestOffset,omitempty"`
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
