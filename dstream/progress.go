package dstream

import (
	"time"

	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/staterdd"
)

// Batch is one batch: its epoch (1, 2, 3 …), its time on the grid of the
// interval (UTC), and the watermark of event time (zero: none yet).
type Batch = staterdd.Batch

// Listener has optional callbacks. They are called in order, never two at once,
// by the run itself: a slow one delays the batch. They may read the context
// (LastProgress, Slice); Stop, Wait and Run in one are errors.
type Listener struct {
	// Started: the context runs; zero is one interval before the first batch.
	Started func(zero time.Time)
	// Ready: all state is in memory and the sources are open, so ReadyErr is nil. It
	// is told right after Started, and once more each time that the run has begun anew
	// in place.
	Ready func(Readiness)
	// NotReady: the run begins anew in place, because of this error: an older run had
	// decided an epoch after all, or the layout of the state changes. Nothing is lost;
	// state is loaded once more (StateLoading), ReadyErr says what is waited for, and
	// Ready is told, or the run ends. The end of a run is not told here.
	NotReady func(error)
	// StateLoading: so far a partition's state is loaded from the checkpoint. It is
	// called before Ready, from several goroutines, never two at once, after each
	// file, every 8 MiB, and at least every five seconds, with the same numbers if
	// nothing has come from the store. It may ask ReadyErr.
	StateLoading func(StateLoading)
	// Notice: something about the checkpoint that a user should know, such as a
	// migration, a bad snapshot that was passed over, or retries. A retry, of a sink or of
	// the store, is told before the pause that it begins with, in the middle of a batch too.
	Notice func(Notice)
	// SourceNotice: something that a source wants a user to know, such as partitions
	// that are new, reads that have stalled, records that are lost; the text is the
	// source's name. Each is told once, in the order of the source, within a second, in
	// the middle of a batch too.
	SourceNotice func(string, source.Notice)
	// StateMemoryHigh: states take more than four fifths of WithStateMemoryLimit.
	StateMemoryHigh func(StateMemory)
	// BatchRedone: the batch that begins was planned by an earlier run, which did
	// not commit it. BatchStarted follows.
	BatchRedone func(Batch)
	// BatchSubmitted: the batch of this time is due. It begins when those before it
	// have ended; with the earlier ones it is told between the phases of a batch.
	BatchSubmitted func(time.Time)
	// BatchStarted: the batch's sources are planned.
	BatchStarted func(Batch)
	// BatchCompleted: the batch is committed.
	BatchCompleted func(Progress)
	// BatchFailed: the batch was given up; the run ends with this error.
	BatchFailed func(Batch, error)
	// OutputStarted: an output of the batch begins; the text is its name. (Rows of an
	// exactly-once sink are written later, right before the commit.)
	OutputStarted func(Batch, string)
	// OutputCompleted: an output of the batch has ended, all attempts together. The
	// error is nil if it succeeded; else the batch fails.
	OutputCompleted func(Batch, OutputProgress, error)
	// OutputFailed: an attempt of an output failed.
	OutputFailed func(Batch, string, error)
	// ClockHeld: the clock was set back behind a time that it had shown, and no batch
	// begins until it has passed the last batch time. It is told once each time, when
	// the next batch would have been due; and at a start on a checkpoint whose last
	// batch time lies ahead.
	ClockHeld func(ClockHeld)
	// TickSkipped: a tick got no batch, as MaxQueuedBatches others were waiting or
	// the clock jumped over it. It is told between the phases of a batch. Of a very
	// long row of them only the first 1000 are told; Progress.SkippedTicks is exact.
	TickSkipped func(time.Time)

	// ReceiverStarted: the receiver of a ReceiverStream is called; the text is the
	// stream's name. These three are told between the phases of a batch, and at the
	// end of the run.
	ReceiverStarted func(string)
	// ReceiverFailed: the receiver returned an error and is called again.
	ReceiverFailed func(string, error)
	// ReceiverStopped: the receiver is not called any more, with the error that ended
	// it if it did not end in order.
	ReceiverStopped func(string, error)
}

// Progress is what one committed batch did. Durations are by the context's
// clock.
type Progress struct {
	Batch     Batch
	Redo      bool // the epoch was planned by an earlier run that did not commit it
	Interval  time.Duration
	InputRows int64 // records read from all sources

	SchedulingDelay time.Duration // batch time to the start of the batch
	ProcessingDelay time.Duration // start of the batch to its commit
	TotalDelay      time.Duration // sum of the two
	Phases          Phases

	Sources   []SourceProgress
	Operators []OperatorProgress
	Outputs   []OutputProgress

	Counters []CounterProgress // by name

	Checkpoint CheckpointProgress // zero without a checkpoint

	SkippedRecords int64 // records dropped by the Skip policy
	DeadLetters    int64 // records that failed and went to DeadLetters
	SkippedTicks   int64 // ticks since the start that got no batch
	Queued         int   // ticks waiting behind this batch

	// ClockHolds is how often since the start batches had to wait because the clock
	// was set back; see Listener.ClockHeld.
	ClockHolds int64
	// HeldUntil is the time that the clock must reach for the next batch, while batches
	// wait for that reason; it is set by LastProgress alone, and zero otherwise.
	HeldUntil time.Time
}

// Readiness says what is in memory when a context has become ready.
type Readiness struct {
	Term  uint64 // number of the run on the checkpoint; 0 without one
	Epoch uint64 // newest committed epoch; 0 if there is none
	// Again: the run has begun anew in place, and NotReady was told before.
	Again bool
}

// ClockHeld says that batches wait because the clock was set back: batch times
// never go back.
type ClockHeld struct {
	Now   time.Time // what the clock shows
	Until time.Time // time of the next batch, which waits for it
}

// CheckpointProgress is what became durable with a batch, and what maintenance
// has done since the start of the run.
type CheckpointProgress struct {
	Root       string `json:"root"`       // id of the checkpoint
	Run        string `json:"run"`        // id of the run
	Term       uint64 `json:"term"`       // number of the run on the checkpoint
	Commits    int64  `json:"commits"`    // since the start
	Restarts   int64  `json:"restarts"`   // times that the run has begun anew in place
	DeltaFiles int    `json:"deltaFiles"` // written by the batch
	DeltaBytes int64  `json:"deltaBytes"` // their length

	Snapshots       int64  `json:"snapshots"`       // written since the start
	SnapshotBytes   int64  `json:"snapshotBytes"`   // their length
	SnapshotsFailed int64  `json:"snapshotsFailed"` // failed tries
	SnapshotsForced int64  `json:"snapshotsForced"` // written as the deltas after the last one had become too many
	Repaired        int64  `json:"repaired"`        // bad or lost snapshots that a load found
	Deleted         int64  `json:"deleted"`         // files that are no longer needed
	ChainMax        uint64 `json:"chainMax"`        // most deltas that a load would read in any partition
	Floor           uint64 `json:"floor"`           // oldest version whose files are kept; 0 while all are
}

// Phases are the parts of the processing delay.
type Phases struct {
	Plan, Compute, Output, Commit time.Duration
	// PlanCommit is the part of Plan that makes the plan durable; 0 without a checkpoint,
	// and for an epoch that an earlier run had planned.
	PlanCommit time.Duration
}

// SourceProgress is one source's part of a batch.
type SourceProgress struct {
	Name      string
	InputRows int64
	// Rate is what backpressure allowed the batch's plan, in records per second; 0
	// without it, and for an epoch that an earlier run had planned.
	Rate float64
	// Limit is the most records that the plan could have, by Rate and
	// WithMaxRecordsPerBatch; 0: no limit, or planned by an earlier run.
	Limit int64
	// LimitBytes is the most bytes that it could have (WithMaxBytesPerBatch); 0 as in
	// Limit.
	LimitBytes int64
	Ranges     []RangeProgress
	Duplicates int64 // records below the expected offset, dropped
	Gaps       int64 // offsets that no record had
	Skipped    int64 // records dropped by the Skip policy
	// DeadLetters are the letters of the source's DeadLetters and ForeachDeadLetter.
	DeadLetters int64
	Retries     int64 // failed plans and reads that were tried again

	// Reports: the source tells of itself (source.Reporter). What follows, and what the
	// ranges have from End on, is what it told right after the commit, and zero
	// otherwise.
	Reports bool
	Lag     int64 // records (offsets) that wait, as far as is known
	// Counters count since the source was opened, by name: of Kafka, lost_records and
	// lost_topics are what ContinueOnLoss has passed over.
	Counters map[string]int64
	Warnings []string // what is wrong
}

// RangeProgress is what a batch read of one source partition: [From, Until).
type RangeProgress struct {
	Partition   string
	From, Until int64
	InputRows   int64

	End int64 // behind the last record that the source knows of
	Lag int64 // records (offsets) from what is committed up to End
	// LastProgress is when a read last moved forward, or found nothing left to read.
	LastProgress time.Time
	Waiting      time.Duration // for which a read has been waiting for the source
	Stalled      bool          // for too long
	// Written is where the partition really ends, and Held for how long End has stood before
	// that, by a transaction of others that is open (source.PartitionReport).
	Written int64
	Held    time.Duration
}

// OperatorProgress is one stateful operator's part of a batch.
type OperatorProgress struct {
	Name       string
	Partitions int
	Keys       int64 // live keys after the batch
	Calls      int64 // calls of the function with a value
	TimedOut   int64 // keys that timed out, and deadlines that fired
	Changed    int64 // keys written, refreshed or removed
	Inserted   int64 // keys that got a state
	Removed    int64 // keys that lost it, time-outs among them
	Skipped    int64 // records that failed and were left out: skipped, or dead letters
	HeapBytes  int64 // of the state maps, without what states point to
	// Updates is how long the partitions took for the batch's data, Removals for what follows
	// it (time-outs, keys without data): sums over partitions, which work side by side.
	Updates, Removals time.Duration
	// Commit is how long it took to make what the batch changed durable; 0 without a
	// checkpoint.
	Commit time.Duration
	// MemoryBytes is HeapBytes and, estimated, what keys and states point to; 0
	// without WithStateMemoryLimit.
	MemoryBytes int64
}

// OutputProgress is one output's part of a batch.
type OutputProgress struct {
	Name     string
	Kind     string
	Attempts int
	Duration time.Duration
	// Rows are those of the epoch for an exactly-once sink, whether or not it had them
	// already; 0 of a plain output.
	Rows int64
}
