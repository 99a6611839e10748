package main

// The numbers of keys and records of the targets.
const (
	manyKeys  = 1_000_000
	fewKeys   = 10_000
	batchSize = 200_000
)

// benches are the speed targets, in the order in which they are printed.
var benches = []*bench{
	{
		name: "statemap_update_1m", ratio: "ratio_to_bare_map", target: 0.7, measure: measureUpdate(manyKeys),
		about: "update path, 1M keys: hash, slot, function with State, emit, against a bare map[string]int64",
	},
	{
		name: "statemap_update_10k", ratio: "ratio_to_bare_map", target: 1.4, measure: measureUpdate(fewKeys),
		about: "the same at 10k keys",
	},
	{
		name: "job_1m", ratio: "ratio_to_sharded_map", target: 1.0, cores: 2, measure: measureJob(manyKeys),
		about: "whole in-memory job on two cores, 1M keys, against one producer and two owners of maps",
	},
	{
		name: "job_10k", ratio: "ratio_to_sharded_map", target: 1.8, cores: 2, measure: measureJob(fewKeys),
		about: "the same at 10k keys",
	},
	{
		name: "batch_p99", ratio: "p99_to_median", target: 3, cores: 2, measure: measureLatency,
		about: "batch time in memory, 1M keys, 1 % changed a batch: 99th percentile over median",
	},
	{
		name: "batch_p99_durable", ratio: "p99_to_median", target: 3, cores: 2, maxProcs: 3, maxRuns: 7, measure: measureDurableLatency,
		about: "the same with a checkpoint on the disk: deltas, commits and snapshots",
	},
	{
		name: "commit_bytes", ratio: "ratio_to_encoding", target: 1.3, cores: 2, maxProcs: 2, maxRuns: 7, measure: measureCommitBytes,
		about: "bytes written at a commit, documents included, over the encoding of the keys that changed (1 % of 1M) and their states",
	},
	{
		name: "load_1m", ratio: "ns_per_key", target: 300, cores: 1, maxProcs: 3, maxRuns: 5, measure: measureLoad,
		about: "CPU from the start of a run to its readiness, 1M keys from a snapshot on the disk: 300 ns a key are 300 ms on a core",
	},
	{
		name: "load_memory", ratio: "peak_to_final", target: 1.5, cores: 1, maxProcs: 3, maxRuns: 1, measure: judgedBy("peak_to_final"),
		about: "greatest heap while 1M keys are loaded, over the heap of the loaded state",
	},
	{
		name: "disk_per_key", ratio: "bytes_per_key", target: 24, cores: 1, maxProcs: 1, maxRuns: 1, measure: judgedBy("disk_bytes_per_key"),
		about: "snapshot on the disk: string of 16 bytes to int64, not compressed",
	},
	{
		name: "heap_per_key", ratio: "bytes_per_key", target: 80, measure: measureHeap,
		about: "heap at rest: string of 16 bytes to int64, one version, idle timeout on",
	},
	{
		name: "expiry", ratio: "ratio_to_linear", target: 2, measure: measureExpiry,
		about: "expiry pass against expired + n/T: ten times the keys cost the same, ten times the hints ten times as much",
	},
	{
		name: "touched_1m", ratio: "ratio_of_1_percent_to_all", target: 1.0 / 30, cores: 1, maxProcs: 3, maxRuns: 5, measure: measureTouched,
		about: "CPU of a batch of mapWithState with a record of 1 % of 1M keys over one with a record of each; updateStateByKey beside it",
	},
	{
		name: "reduce_by_key_10k", ratio: "ratio_to_bare_map", cores: 1, measure: measureReduce(fewKeys),
		about: "ReduceByKey in a job, 200,000 records of 10k keys, against a bare map that is filled and listed; no target",
	},
	{
		name: "reduce_by_key_1m", ratio: "ratio_to_bare_map", cores: 1, measure: measureReduce(manyKeys),
		about: "the same with 1M keys",
	},
	{
		name: "inverse_window", ratio: "ratio_to_plain_window", cores: 1, measure: measureWindow,
		about: "ReduceByKeyAndWindowInverse against ReduceByKeyAndWindow over 60 batches of 20,000 records of 10k keys; no target",
	},
	{
		name: "window_log", ratio: "ratio_to_encoding", target: 1.3, cores: 1, maxProcs: 2, maxRuns: 3, measure: measureWindowLog,
		about: "bytes that a window of 60 batches adds to a commit, over the newest batch's sums by key as their codec writes them",
	},
	{
		name: "kafka_fetch", ratio: "ratio_to_fastest_client", target: 0.25, maxProcs: 4, maxRuns: 4,
		input: fillFetch, measure: measureFetch,
		about: "CPU of fetching and decoding 2M Kafka records of 20 bytes, against the faster of kafka-go's Reader and franz-go",
	},
	{
		name: "kafka_count_10k", ratio: "ratio_to_parts", target: 1.2, maxProcs: 3, maxRuns: 5,
		input: fillCount(fewKeys), measure: measureCount(fewKeys),
		about: "CPU of the job Kafka, FlatMap, MapPair, mapWithState, sink, 10k keys, against fetching alone plus the job in memory",
	},
	{
		name: "kafka_count_1m", ratio: "ratio_to_parts", target: 1.2, maxProcs: 3, maxRuns: 5,
		input: fillCount(manyKeys), measure: measureCount(manyKeys),
		about: "the same at 1M keys",
	},
	{
		name: "kafka_backlog", ratio: "peak_to_budget", target: 2, maxProcs: 1, maxRuns: 1,
		input: fillBacklog, layout: layout{backlogPartitions, 512 << 10}, measure: measureBacklog,
		about: "greatest heap of a job that works off 2 GiB of 100 KiB records in 8 partitions, over its budget of 64 MiB",
	},
}
