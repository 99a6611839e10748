package kafka

import (
	"context"
	"fmt"
	"slices"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// OffsetRange is the records of a partition with offsets in [From, Until).
type OffsetRange struct {
	TopicPartition
	From, Until int64
}

// Count is the number of offsets. There may be fewer records: compaction and transactions
// leave offsets without one.
func (r OffsetRange) Count() int64 { return r.Until - r.From }

func (r OffsetRange) String() string {
	return fmt.Sprintf("%v [%d, %d)", r.TopicPartition, r.From, r.Until)
}

// OffsetRanges gives what a batch reads, where r is the RDD of a Kafka stream in Transform
// or ForeachRDD: partition i of r holds the records of range i, and in a batch that is
// redone after a crash they are the same. It holds for that RDD alone, before any step on
// it; for others the error is dstream.ErrNoRanges. Of a stream that a test kit feeds, the
// topic is the source's name and the partition its number.
func OffsetRanges(r *rdd.RDD[Record]) ([]OffsetRange, error) {
	ranges, err := dstream.SourceRanges(r)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	out := make([]OffsetRange, len(ranges))
	for i, x := range ranges {
		tp := partitionOf(x.Partition)
		if tp.Partition < 0 { // not one of ours
			tp = TopicPartition{Topic: r.Name(), Partition: int32(i)}
		}
		out[i] = OffsetRange{tp, x.From, x.Until}
	}
	return out, nil
}

// RDD is a dataset of the records in the given ranges, one partition for each, for Constant
// and for the bodies of Transform and ForeachRDD. opts say how the cluster is talked to
// (Brokers, TLS, ReadUncommitted, RequestTimeout …); what is read is said by ranges alone.
//
// The cluster is asked whenever the dataset is computed: rdd.Keep it to read once. Each
// partition has connections of its own while it is read. Ranges may overlap and need not
// be in order. A range that retention has removed, or a part of it, is an *OffsetRangeError;
// with ContinueOnLoss what is left of it is read. One that goes beyond the end of the log is
// an error too, and so is one that goes beyond the first open transaction: nothing is waited
// for.
func RDD(ranges []OffsetRange, opts ...SourceOption) (*rdd.RDD[Record], error) {
	c := given(opts)
	switch {
	case len(c.topics) > 0 || c.pattern != nil || c.wait || c.given > 0 || c.offsets != nil || c.toEnd:
		c.fault("an RDD reads its ranges: leave out the options of topics and partitions, and of where to start and to stop")
	case c.group != "" || len(c.watches) > 0:
		c.fault("Group and Monitor do not apply to an RDD")
	}
	if len(ranges) == 0 {
		c.fault("an RDD has at least one range")
	}
	for _, r := range ranges {
		if r.From < 0 || r.Until < r.From || r.Topic == "" || r.Partition < 0 {
			c.fault("there can be no range %v", r)
		}
	}
	if err := c.valid(); err != nil {
		return nil, &Error{Doing: "options", Err: err, final: true}
	}
	ranges, opts = slices.Clone(ranges), slices.Clone(opts)
	return rdd.New(len(ranges), func(t *rdd.Task, emit func(Record) error) error {
		return readOnce(t, ranges[t.Partition], opts, emit)
	}).Named("kafka"), nil
}

// readOnce reads a range by a source of its own, as an epoch that was planned before.
func readOnce(t *rdd.Task, r OffsetRange, opts []SourceOption, emit func(Record) error) (err error) {
	name := r.TopicPartition.String()
	t.Origin = rdd.Origin{Stream: "kafka", Partition: name, Offset: r.From}
	once := sourceOption(func(c *config) { c.once = true })
	s := NewSource(append(slices.Clone(opts), Partitions(r.TopicPartition), ReadAhead(0), once)...)
	x := source.Range{Partition: name, From: r.From, Until: r.Until}
	if err := s.Open(t.Ctx, &source.Plan{Ranges: []source.Range{x}}); err != nil {
		return readError(t.Ctx, name, err)
	}
	defer s.Close()
	var down error
	err = s.Read(t.Ctx, x, func(offset int64, v Record) error {
		t.Origin.Offset = offset
		down = emit(v)
		return down
	})
	if down != nil {
		return down
	}
	return readError(t.Ctx, name, err)
}

// readError lets the engine try again what may pass.
func readError(ctx context.Context, partition string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &dstream.ReadError{Source: "kafka", Partition: partition, Err: err}
}
