package kafka

import (
	"time"

	"github.com/statemill/statemill/source"
)

// ReadCommitted leaves out aborted transactions, and waits before open ones (HangAfter).
// It is the default.
func ReadCommitted() SourceOption { return sourceOption(func(c *config) { c.dirty = false }) }

// ReadUncommitted delivers the records of open and aborted transactions too, as
// soon as they are replicated.
func ReadUncommitted() SourceOption { return sourceOption(func(c *config) { c.dirty = true }) }

// StopAtEnd makes the source end: it reads up to the end of each partition as it is
// when the first batch is planned. With dstream.WithStopWhenDone the run ends then.
func StopAtEnd() SourceOption { return sourceOption(func(c *config) { c.toEnd = true }) }

// MaxBatchBytes bounds the bytes of one batch over all partitions, after
// decompression; default 256 MiB, from 1 KiB to 1 TiB. How many records that is, is
// judged from the size of those read before and from samples of 4 or 64 KiB (or one
// record batch) at one to three places of the range. So a batch may be larger where
// sizes jump between the samples, and where a single record is larger. A job may hold the records of two batches at once, the running
// one and the one before: give a batch at most half of the memory that you have.
//
// It also bounds what one record batch of the broker may take, compressed or not: a
// larger one is a RecordError that names its offset. Each header of a record counts 48
// bytes beside its own.
func MaxBatchBytes(n int64) SourceOption {
	return sourceOption(func(c *config) {
		if n < 1<<10 || n > 1<<40 {
			c.fault("MaxBatchBytes is %d, it must be 1 KiB to 1 TiB", n)
		}
		c.maxBatchBytes = n
	})
}

// FetchMaxBytes is how much one request to a broker asks for; default 1 MiB, from
// 1 KiB to 512 MiB. A larger record comes all the same.
func FetchMaxBytes(n int) SourceOption {
	return sourceOption(func(c *config) {
		if n < 1<<10 || n > 512<<20 {
			c.fault("FetchMaxBytes is %d, it must be 1 KiB to 512 MiB", n)
		}
		c.fetchMaxBytes = n
	})
}

// ReadAhead is how many bytes, over all partitions, may be fetched before a task reads
// them: of a batch as soon as it is planned, many partitions with one request, so that a
// batch of many small ranges does not wait for one answer after the other; and for the next
// batch while this one computes. The default is an eighth of MaxBatchBytes and at most
// 32 MiB; up to 1 TiB; 0 fetches nothing ahead, and each task asks for its own range. They
// are no plan: what the next batch does not read is dropped. They count as they are sent,
// and are in memory beside the batches.
func ReadAhead(n int64) SourceOption {
	return sourceOption(func(c *config) {
		if n < 0 || n > 1<<40 {
			c.fault("ReadAhead is %d, it must be 0 to 1 TiB", n)
		}
		c.readAhead = max(n, 0)
	})
}

// ContinueOnLoss goes on where records are gone that were not read: removed by
// retention, or with a topic that was deleted. The default is to stop with an error.
//
// What is gone is passed over, counted ("lost_records" of [Monitor.Report]) and told
// (OnNotice); the state stays as it is. A topic that was made again, which its id tells, is
// read from its first offsets; one that no broker knows is left out with its position kept,
// and read from there if it comes back as the same. An epoch that was planned before reads
// what is left of its range. Where a topic goes in the middle of a batch that has records of
// it, the run ends, for the batch can be neither finished nor planned anew: a start goes on.
// That a log ends before what was read of it is an error all the same.
func ContinueOnLoss() SourceOption { return sourceOption(func(c *config) { c.onLoss = true }) }

// Group mirrors the positions to the offsets of a consumer group, after each commit, so
// that Kafka's own tools and lag monitors see them. The source never reads them, nor
// joins the group, which must be the source's own: no member, and no other job.
//
// The offsets are never ahead of what is durable and never go back. They are written
// beside the batches; a failure is counted ("mirror_failed") and told (OnNotice), and
// fails no batch. Close brings the last ones within half a second. Their metadata names
// the root of the checkpoint, so that two jobs with one group are told of each other.
// Two sources of one job may have one group if they read different partitions: Kafka's tool
// shows a group's offsets partition by partition. Where both read one, that is a fault of
// the job, before the start or, where it depends on which topics match a pattern, at it.
// Kafka's tool counts the lag up to the high watermark: records of open transactions are
// lag there, and not in a Report, which has them apart (Written).
func Group(name string) SourceOption {
	return sourceOption(func(c *config) {
		if name == "" || len(name) > 249 {
			c.fault("Group: the name %q has %d bytes, it must have 1 to 249", name, len(name))
		}
		c.group = name
	})
}

// StallAfter is for how long a read or a plan may wait for a broker without moving
// forward before that is told, with the partitions that it leads (OnNotice, Monitor);
// default 10 s, at least 10 ms. It is told at most a tenth of it later.
func StallAfter(d time.Duration) SourceOption {
	return sourceOption(func(c *config) {
		if d < 10*time.Millisecond {
			c.fault("StallAfter is %v, it must be at least 10ms", d)
		}
		c.stallAfter = d
	})
}

// HangAfter is for how long a transaction of others may be open before a source that reads
// committed records tells that it waits there (OnNotice, Monitor); default 2 min, at least
// 10 ms. A client's transaction times out after one minute by default; give more where
// producers are allowed longer ones. What advances is not told: it is the last stable
// offset that must stand still for so long, while the log goes on behind it.
func HangAfter(d time.Duration) SourceOption {
	return sourceOption(func(c *config) {
		if d < 10*time.Millisecond {
			c.fault("HangAfter is %v, it must be at least 10ms", d)
		}
		c.hangAfter = d
	})
}

// OnNotice calls f for each thing that a user should know and that is no error: records
// that are lost, partitions that are new or stalled, offsets that could not be mirrored.
// f is called from the source's goroutines, one call at a time; it must not wait.
func OnNotice(f func(source.Notice)) SourceOption {
	return sourceOption(func(c *config) {
		if f == nil {
			c.fault("OnNotice: the function is nil")
		}
		c.notify = f
	})
}
