// Package kafka reads Kafka topics into streams, exactly once into state.
//
//	lines := kafka.DirectStream(ssc, "lines",
//		kafka.Brokers("localhost:9092"), kafka.Topics("test"), kafka.FromEarliest())
//
// Each batch reads, of every partition of the topics, a range of offsets that was
// fixed before; one Kafka partition is one partition of the batch's RDD. Positions
// are the engine's: there is no consumer group, nothing is committed to the broker.
//
// The main types are [Record] and the [SourceOption]s; [NewSource] makes the source
// that [DirectStream] turns into a stream.
//
// # What holds
//
// A range is done when the next offset to ask for lies at or behind its end, never
// when a certain record was seen: control markers, compacted records and whole
// empty batches are passed over. Nothing below the begin of a range comes out. By
// default (ReadCommitted) a plan ends before the first open transaction, and
// records of aborted transactions are left out.
//
// A batch is bounded in records (the engine's limit) and in bytes (MaxBatchBytes),
// from the first one on. Every call is bounded in time. What may pass (a broker
// away, a leader moved) is tried again with growing pauses for RetryFor; then the
// error wraps the cause. A quota is waited for as long as the broker says. What
// cannot pass (an offset that is gone, a topic made again, bytes that are no
// records) is told at once: see [OffsetRangeError], [RecordError],
// [source.ChangedError].
//
// # Writing
//
// [Sink] writes each epoch's messages in one transaction, exactly once, to any
// number of topics of one cluster:
//
//	out := kafka.NewSink("out", kafka.Brokers("localhost:9092"))
//	dstream.Output(counts, "counts", kafka.To(out, "counts", func(c dstream.Pair[string, int]) (kafka.Message, error) {
//		return kafka.Message{Key: []byte(c.Key), Value: strconv.AppendInt(nil, int64(c.Value), 10)}, nil
//	}))
//
// Readers of committed records see all of an epoch or nothing of it, and each
// epoch once, whatever crashes.
//
// [DeadLetters] is a door of a Sink for records that could not be processed, with
// their origin and the error in headers. [AtLeastOnce] writes a stream through an
// idempotent [Producer], without transactions: what a batch writes again when it runs
// again is there twice.
//
// # Security
//
// [TLS], [SASLPlain], [SASLScram256] and [SASLScram512] are options of sources, sinks
// and producers. Brokers that refuse, and are refused, are told at once; passwords are
// in no text.
//
// # What it does not do
//
// It joins no group, follows no topic pattern, and takes the partitions that it
// found when it was opened. It does not decode keys and values. It reads the record
// format of Kafka 0.11 and later, from brokers of version 1.0 and later.
package kafka
