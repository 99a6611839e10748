package staterdd

import (
	"iter"
	"time"

	"github.com/statemill/statemill/statemap"
)

// Record is the one record of a partition of a MapWithStateRDD (D1): the state after the batch
// and what the calls of the batch emitted.
type Record[K comparable, S, M any] struct {
	// StateMap is the version of the partition's state. Those of a MapWithStateRDD that was
	// released are released too.
	StateMap *statemap.Map[K, S]
	// Mapped are the outputs of the records in record order, then those of timed-out keys.
	Mapped Chunks[M]
	// Stats tell what the batch did.
	Stats Stats
}

// Chunks are outputs in order, cut into pieces. They belong to the MapWithStateRDD and are
// reused after its release.
type Chunks[M any] [][]M

// Len is the number of outputs.
func (c Chunks[M]) Len() int {
	n := 0
	for _, chunk := range c {
		n += len(chunk)
	}
	return n
}

// All yields the outputs in order.
func (c Chunks[M]) All() iter.Seq[M] {
	return func(yield func(M) bool) {
		for _, chunk := range c {
			for _, m := range chunk {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// Timed is a key with its state and the time of its last update, in unix nanoseconds. In the
// state of a keyed operator Time is the key's deadline as UnpackDeadline reads it.
type Timed[K comparable, S any] struct {
	Key   K
	State S
	Time  int64
}

// Stats tell what a batch did to the state.
type Stats struct {
	// Keys is the number of live keys after the batch.
	Keys int64
	// Calls is the number of calls with a value (of an update function: of all its calls),
	// TimedOut that of final and deadline calls.
	Calls, TimedOut int64
	// Changed is the number of keys that were written, refreshed or removed.
	Changed int64
	// Inserted is the number of times a key without state got one, Removed that of removals.
	Inserted, Removed int64
	// Skipped is the number of records and final calls dropped in guarded mode.
	Skipped int64
	// HeapBytes is the memory of the state maps, shared with older versions; what states point
	// to is not counted.
	HeapBytes int64
	// Updates is how long the partitions took for the batch's data, Removals for what follows
	// it, such as time-outs and the calls of keys without data; each is a sum over partitions,
	// which work side by side. Zero without Options.Now.
	Updates, Removals time.Duration
}

// add sums up the partitions.
func (s *Stats) add(o Stats) {
	s.Keys += o.Keys
	s.Calls += o.Calls
	s.TimedOut += o.TimedOut
	s.Changed += o.Changed
	s.Inserted += o.Inserted
	s.Removed += o.Removed
	s.Skipped += o.Skipped
	s.HeapBytes += o.HeapBytes
	s.Updates += o.Updates
	s.Removals += o.Removals
}
