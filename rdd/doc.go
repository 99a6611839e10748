// Package rdd holds the immutable partitioned datasets of one batch and what runs them.
//
// An [RDD] is a lazy dataset of n partitions. Computing a partition pushes its
// records one by one, depth first, through func(T) error: narrow chains (Map,
// Filter, FlatMap …) fuse by nesting closures, so there is no channel, no
// goroutine and no slice per record or per step, and the cursor in [Task.Origin]
// names stream, partition and offset of the record being worked on for every
// step of the chain at the cost of one store per record.
//
// Where records have to be collected before another dataset can be computed
// (the map side of a shuffle, kept rows, a state update) there is a [Stage]: the
// not-generic unit of work. [Materialize] runs the stages that a dataset needs,
// dependencies first, each at most once. An [Executor] supplies workers, retries
// and the guarded mode; [Local] is the default one. Actions ([Collect], [Count],
// [Take], [ForeachPartition], [Reduce] …) run the needed stages and then one task
// per partition. Keyed steps ([ReduceByKey], [GroupByKey], [Join], [Cogroup] …) lay
// their datasets out by a partitioner, and move nothing that lies by an equal one
// already.
//
// Invariants:
//   - Order is part of the result. A shuffle gives a target the rows of source
//     partition 0 first, then 1, …, each in its order; groups and reductions are in
//     first-seen order. Neither depends on the number of workers nor on which
//     task ended first.
//   - A stage's task is restartable: it begins by discarding what an earlier
//     attempt of the same partition wrote.
//   - Released data answers [ErrReleased] and never other data; data that is being
//     read goes back to the pool only after the reader has left.
//   - There is one recover per task. Under guarded mode ([Task.Guard]) records are
//     pushed one at a time and a record that fails leaves no row behind.
//   - Blocks come from the [Pools] of the run. Nothing here is package state.
//
// The package knows no time, no batch number and no state, writes no file and
// starts no goroutine but through internal/pool while a call lasts.
package rdd
