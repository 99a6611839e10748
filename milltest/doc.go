// Package milltest runs a job in a test: the same job, unchanged, on scripted
// batches and with a clock that the test moves.
//
//	kit := milltest.New(t, time.Second, job)
//	in := milltest.Input[string](kit, "lines") // in the place of the source "lines"
//	in.Batch("a b a")
//	kit.Tick(1)                                // one batch, completed on return
//	got := milltest.Output[dstream.Pair[string, int]](kit, "counts")
//	state := milltest.State[string, int](kit, "counts")
//
// Names put the kit in place of the outside world: a source is replaced by
// [Input], the output of a name is captured in [Output] (an unnamed output by
// the name of its stream), a stateful operator is looked at by [State] and
// [StateTimes]. What a batch did is in [Kit.Progress], why a run ended in
// [Kit.Err].
//
// # Time
//
// The clock stands still but for [Kit.Tick] and [Kit.Advance]. It starts at the
// Unix epoch, so batch n has the time n × interval, unless [Kit.StartAt] says
// otherwise. Tick returns when the batch of its tick is complete. Nothing here
// sleeps or polls, so kits run in parallel, under the race detector, and inside
// a bubble of testing/synctest; nothing is shared between two kits.
//
// # Outputs
//
// Print is captured and not printed. The functions of ForeachRDD and Foreach
// are the job's own code: they are captured and also run, until
// [Kit.ReplaceOutput] names them. [Kit.DiscardOutput] neither captures nor
// runs one (for jobs with millions of records).
//
// # Faults
//
// [In.FailReads], [In.FailPlans] and [Kit.FailOutput] inject errors,
// [Kit.BlockOutput] makes a sink slow, [In.Repeat] sends records twice,
// [In.Gap] leaves holes in the offsets. I/O errors are retried by the engine
// without waiting.
//
// An error that ends the run does not fail the test at once: the test may be
// about it. But it must be looked at with [Kit.Err]; one that was not fails the
// test at the next look at outputs or state, or at its end.
//
// # States that pin their input
//
// A state that keeps a string or a byte slice cut out of an input record keeps
// the whole buffer alive that the record was fetched in. The kit finds these: at
// State, StateTimes and the end of the test it looks for texts within states that
// lie in the memory of a record given to an [In], and warns by t.Logf, once an
// operator; [Kit.Warnings] lists the warnings. Copy what a state keeps with
// strings.Clone or bytes.Clone. (Keys need no copy: the operator has made one.) It
// looks at the first 100 000 records of each input and 100 000 states of each
// operator, and does not see what is cut out of a text that the job made itself
// of a record. So that nothing else shares them, strings and byte slices of
// records, also in exported fields of structs, are copied when the test gives
// them.
//
// # Stops and crashes
//
// After [Kit.Checkpoint] the job is durable, in a file system in memory.
// [Kit.Restart] stops the run and readies the kit for the next one, [Kit.Crash]
// ends it as a loss of power does: what was not synced is gone, and what the run
// was doing is given up. The next tick starts another run, at the clock's time
// ([Kit.StartAt] lets time pass while nothing runs), with another version of the
// job if [Kit.Job] gives one. Inputs go on where the last plan ends; outputs and
// [Kit.Progress] gather over all runs, an epoch that is redone in the place of its
// first attempt. [Kit.WrapCheckpoint] puts faults into the file system.
//
// Snapshots and clean-up are done after each commit instead of beside the batches,
// so every run of a test makes the same calls. Exactly-once sinks are captured like
// other outputs, and not written.
//
// # What it does not do
//
// It tests no sink and no source of the outside world: see packages sinktest and
// sourcetest.
package milltest
