// Command bench measures Statemill's speed targets as ratios against fixed baselines, in one run on one machine.
//
// Each benchmark prints one JSON line: the ratio, its target, whether it was met, and both sides' raw numbers. Ratios are
// what counts, as both sides see the same machine in the same second; nanoseconds are there to be read.
//
// Method. The command runs itself -procs times (5), one process for one benchmark; each process builds both sides, then
// measures -runs (7) interleaved runs of several batches of 200,000 records, in alternating order. A process's figure is
// the quotient of the two sides' medians; the benchmark's figure is the median of the processes, printed with its range.
// Work on one core is judged on CPU time of the process, garbage collection on all cores included; work on two cores on
// wall time, and is void if a side kept fewer than 1.7 cores busy.
//
// Data: 10,000 or 1,000,000 uniform keys of 16 bytes. Every batch carries its own fresh copies of the key bytes, so that
// no side meets a stored key at the same address. The previous version of the state stays readable during a batch.
//
// A figure without a target (reduce_by_key_…, inverse_window) is there to be read.
//
// Kafka benchmarks (kafka_…) read a topic of four partitions with uncompressed values of 20 bytes. The broker is always
// another process, as its processor time must not be counted: an embedded one, which the command starts of itself and
// which ends with it, or the one that STATEMILL_KAFKA names (host:port, with commas between several), as in
//
//	test/kafka/broker/with.sh make bench BENCH=kafka_fetch
//
// which is what make bench-kafka does for all of them, or for one of BENCH.
//
// The topic is made and filled once for all processes of a benchmark and deleted at the end. All sides are judged on CPU
// time; at most 4 processes of 5 runs are made, whatever the flags say. kafka_fetch makes each client read the whole
// topic from connecting to closing. kafka_count divides the whole job by the sum of its parts, fetching and decoding the
// same records in the same batches, and the same job over the same lines in memory. kafka_backlog reads another topic: 8
// partitions with 2 GiB (-backlog) of records of 100 KiB, not compressed, which the embedded broker keeps in its memory.
// The job carries the records through a shuffle into mapWithState with a budget of 64 MiB (kafka.MaxBatchBytes is half of
// it), and is judged by the greatest heap in use, garbage included, over the budget, sampled every half millisecond and
// collected at 20 % of growth; the greatest resident set is told beside it.
//
// Durable benchmarks keep their checkpoint in a temporary folder (TMPDIR says on which disk), which is removed at the end.
// -table prints the tables of docs/state-store.md: bytes written, batch times and recovery times by the number of versions
// between snapshots, a change of the number of partitions, and what a reload of the state in every batch would cost.
//
// The module is nested so that it may grow dependencies that users of the library do not see.
package main
