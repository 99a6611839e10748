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
// # What it does not do
//
// It has no durable state yet: WithCheckpoint is refused. It knows no
// files' formats; sources come from package source, package kafka or outside. It
// prints nothing but what Print writes to the context's writer.
package dstream
