package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/statemill/statemill/kafka/internal/batch"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
)

// The causes of a RecordError.
var (
	ErrCorrupt   = batch.ErrCorrupt   // the bytes are no record batch
	ErrCRC       = batch.ErrCRC       // the checksum does not match
	ErrOldFormat = batch.ErrOldFormat // written by a client from before Kafka 0.11
	ErrTooLarge  = batch.ErrTooLarge  // one record batch is larger than MaxBatchBytes
)

// ErrNoTopic: a topic does not exist.
var ErrNoTopic = errors.New("the topic does not exist")

// OffsetRangeError is an offset that Kafka does not have: older than its retention
// has kept, or beyond the end.
type OffsetRangeError struct {
	Topic     string
	Partition int32
	// Wanted is the offset to read; [Earliest, Latest) is what there is.
	Wanted, Earliest, Latest int64
}

// Lost is how many offsets are gone before the first that can be read.
func (e *OffsetRangeError) Lost() int64 { return max(0, e.Earliest-e.Wanted) }

func (e *OffsetRangeError) Error() string {
	at := fmt.Sprintf("topic %q partition %d: ", e.Topic, e.Partition)
	if e.Wanted > e.Latest {
		return at + fmt.Sprintf("offset %d is beyond the end %d (available %d..%d): was the topic recreated? Start on a new checkpoint, or set the start with FromOffsets",
			e.Wanted, e.Latest, e.Earliest, e.Latest)
	}
	return at + fmt.Sprintf("offset %d is gone, available %d..%d: %d records were removed by retention before they were read. Either start on a new checkpoint (FromOffsets or FromEarliest), or go on without them (ContinueOnLoss)",
		e.Wanted, e.Earliest, e.Latest, e.Lost())
}

// Permanent says that trying again does not help.
func (e *OffsetRangeError) Permanent() bool { return true }

// RecordError is a record batch that cannot be read.
type RecordError struct {
	Topic     string
	Partition int32
	Offset    int64 // the first offset of the batch
	Err       error // wraps ErrCorrupt, ErrCRC, ErrOldFormat or ErrTooLarge
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("topic %q partition %d offset %d: %v: %s", e.Topic, e.Partition, e.Offset, e.Err, e.passing())
}

// Unwrap gives the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// Permanent says that trying again does not help. A wrong checksum may come from
// the network.
func (e *RecordError) Permanent() bool { return !errors.Is(e.Err, ErrCRC) }

// Error is a failure to talk to the cluster, after retries.
type Error struct {
	// Doing is what the source wanted, with topic, partition and offset.
	Doing string
	// Tries is how often it tried.
	Tries int
	Err   error
	final bool
}

func (e *Error) Error() string {
	if e.Tries > 1 {
		return fmt.Sprintf("kafka: %s: %v (tried %d times)", e.Doing, e.Err, e.Tries)
	}
	return fmt.Sprintf("kafka: %s: %v", e.Doing, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Permanent says that the engine need not try again: the cause cannot pass, or it
// lasted for RetryFor when the source was opened.
func (e *Error) Permanent() bool { return e.final }

// passing says whether an error may go away by itself.
func passing(err error) bool {
	var permanent interface{ Permanent() bool }
	var alien *wire.AlienError
	var size *wire.SizeError
	var code wire.Error
	var changed *source.ChangedError
	switch {
	case errors.As(err, &permanent):
		return !permanent.Permanent()
	case errors.As(err, &changed):
		return false
	case errors.Is(err, ErrNoTopic), errors.As(err, &alien), errors.As(err, &size):
		return false
	case errors.As(err, &code):
		return code.Retriable()
	case unwelcome(err):
		return false
	case errors.Is(err, context.Canceled):
		return false
	}
	return true // the network
}
