// Package kafka reads Kafka topics into streams, exactly once into state.
//
//	lines := kafka.DirectStream(ssc, "lines",
//		kafka.Brokers("localhost:9092"), kafka.Topics("test"), kafka.FromEarliest())
//
// Each batch reads, of every partition of the topics, a range of offsets that was
// fixed before; one Kafka partition is one partition of the batch's RDD. Positions
// are the engine's: the source joins no consumer group. [Group] mirrors them to one
// after each commit, for Kafka's own tools.
//
// The main types are [Record] and the [SourceOption]s; [NewSource] makes the source
// that [DirectStream] turns into a stream. What is read is said by [Topics],
// [TopicPattern] or [Partitions], where a first run begins by [FromEarliest],
// [FromLatest], [FromTime] and [FromOffsets]. Partitions and topics that appear later
// are read from their first offset. [Values] and [Pairs] with a [Decoder] turn bytes
// into types; a [Monitor] shows positions, lag and stalls.
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
// records) is told at once: see [OffsetRangeError], [TopicGoneError], [RecordError],
// [source.ChangedError]. Of these, losses (expired offsets, topics that were deleted or
// made again) can be gone over by choice: [ContinueOnLoss] counts and tells them. That no
// broker knows a topic any more may pass, too, and is tried for some seconds; only another
// id says that it was made again.
//
// A record batch that cannot be read (damaged, too large) ends the job, with the option
// that goes on without it in the error: [PassOver] leaves out what it names, counted and told.
//
// A transaction that nobody ends holds readers of committed records up, though the log
// goes on: where a log really ends, and for how long readers have stood before that, is in
// reports and progress, and what stands for too long is a notice and a warning that names
// the offsets and the tool that ends it ([HangAfter]).
//
// A batch's bytes are fetched as soon as it is planned, many partitions with one request,
// and while it computes bytes of the next one ([ReadAhead]). They are no plan: a read takes
// them if it asks for their offsets.
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
// epoch once, whatever crashes, and whatever arrives late: after a request that nobody
// answered, nothing is written before Kafka refuses what may still come of it. An epoch goes
// out to all brokers at once, in as few requests as it fits into (1 MiB in each).
//
// [DeadLetters] is a door of a Sink for records that could not be processed, with
// their origin and the error in headers: dstream.DeadLetters delivers them with the
// commit of their batch. [AtLeastOnce] writes a stream through an idempotent [Producer],
// without transactions: what a batch writes again when it runs again is there twice.
//
// # Security
//
// [TLS], [SASLPlain], [SASLScram256] and [SASLScram512] are options of sources, sinks
// and producers. Brokers that refuse, and are refused, are told at once; passwords are
// in no text.
//
// # What it does not do
//
// It joins no group and takes no position from one. It finds out that a topic was made
// again by the topic's id, which brokers tell since Kafka 2.8, for each plan and again
// after the last read of it, before anything of it can be committed; with older ones, since
// Kafka 2.3, by leader epochs, if the old topic's leader had changed more often than the
// new one's has, or where the log is shorter than what was read. It reads the record
// format of Kafka 0.11 and later, from brokers of version 1.0 and later.
package kafka
