// Package dstream is the front door of Statemill: streams of batches, the
// operators on them, and the context that runs them.
//
// A job is a function that builds a graph on a StreamingContext:
//
//	func job(ssc *dstream.StreamingContext) error {
//		lines := dstream.TextFileStream(ssc, "lines", "book.txt")
//		words := dstream.FlatMap(lines, strings.Fields)
//		ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
//		counts := dstream.MapWithState(ones, dstream.Function(
//			func(word string, one dstream.Option[int], state *dstream.State[int]) dstream.Pair[string, int] {
//				sum := one.OrElse(0) + state.OrElse(0)
//				state.Update(sum)
//				return dstream.KV(word, sum)
//			}).Named("counts"))
//		dstream.Print(counts, 10)
//		return nil
//	}
//	err := dstream.Run(ctx, time.Second, job)
//
// # Main types
//
// StreamingContext holds one graph and runs it. DStream[T] is a sequence of
// RDDs, one per batch; Stream[T] is what operators take. MapWithStateDStream is
// the output of a stateful operator, with its state beside it. Batch, Progress
// and Listener tell what happened.
//
// # What holds
//
// Epochs are strictly serial. In each one all sources are planned, then all
// stateful operators run, then version N is sealed, then the outputs run in
// registration order, then the epoch is committed. An epoch that fails leaves
// nothing: every partition of every operator goes back to version N-1, and the
// run ends with an error that names the operator, the key and the record.
//
// A function of the user runs once per record and epoch, however many streams
// and outputs stand behind it: a stream with two consumers, and every stream
// that an output or Transform reads, is kept as rows until it is forgotten.
// (Attempts that fail and are retried call it again.)
//
// The order of records is part of the result: it does not depend on the number
// of workers.
//
// # Durable runs
//
// With WithCheckpoint what a run knows outlives it: the state of all operators, the
// positions in all sources, and what each epoch reads, which is written before it
// is read. Each step of an epoch is durable before the next one begins: the plan,
// the changes of all operators, plain outputs, exactly-once sinks (Output), the
// commit. So a later run, after a stop or a crash at any instant, loads the newest
// committed version, redoes an epoch that was planned and not committed, with the
// same records and batch time, and goes on. Every record is counted once. Plain
// outputs of the redone epoch run again; exactly-once sinks show it once.
//
// Operators are found again by their names, and nothing of the program is stored:
// functions, types and packages may be renamed. A changed state type, number of
// partitions or set of operators is read, refused, or changed by WithMigration,
// WithRescale and WithDrop; see package codec for types.
//
// One run at a time owns a checkpoint. One that finds that a newer run has taken
// over ends with checkpoint.ErrNotOwner; one that finds that an older run had
// decided an epoch after all begins anew in place, and nobody notices. Snapshots
// and clean-up run beside the batches and end with the run.
//
// # Windows
//
// A window covers (t-length, t], where t is a multiple of its slide after the zero
// time; it is given in the batch of t. The stream has nothing between two slides,
// and its outputs do not run then (an exactly-once sink gets an empty batch). To a
// window a tick without a batch is an empty batch, whether it was skipped or the job
// was down: the window that ends at such a tick is given in the next batch. If
// several windows have ended since the batch before, only the last of them is given,
// once; records that only the others had are counted into it, so that none is lost.
//
// State over a window has the window's slide: its function is called, keys time out and
// its stream and its snapshots are due where the window is, and in the batches between
// the state stays as it is.
//
// What windows read is kept in memory as long as they need it. On a checkpoint it is
// in the store too, once a batch, as the state of a hidden operator that is named
// after the window; so a window needs a name there, and records that can be stored.
//
// # Bad records
//
// A record for which a function fails ends the run, is skipped, or goes to the dead
// letters of its source, by the policy of the operator (DStream.OnError) or of the
// context (WithRecordPolicy). [DeadLetters] delivers such records with the commit of
// their epoch, each once; [ForeachDeadLetter] at least once. See docs/bad-records.md.
//
// # What it does not do
//
// It knows no files' formats; sources come from package source, package kafka or outside. It
// prints nothing but what Print writes to the context's writer.
package dstream
