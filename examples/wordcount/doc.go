// Wordcount counts the words of text in a Kafka topic with mapWithState, and
// proves the result.
//
// Without arguments the text is the source tree of the installed Go toolchain;
// give it files or folders, or - for the standard input. It starts a small Kafka
// inside the process, writes the lines to a topic of several partitions and
// counts that topic while it is being written, in many batches; the running
// count of every word is state, spread over partitions. While it runs, progress
// goes to the standard error and the top words of batches to the standard
// output. It ends by itself when every written line has been counted. Then every
// total is compared with a plain, independent count of the same text:
//
//	verified: 312345 keys exact
//
// Exit 0: every total was exact. Exit 1: one was not, or the text cannot be
// read, or the run failed. Exit 2: wrong usage. With -files it does the same
// without Kafka.
//
// With -checkpoint it is durable: kill it at any time, start it again, and it goes
// on. The state is in the checkpoint folder, the log of the small Kafka beside it,
// and the producer finds by the ends of the partitions which lines are missing.
//
// With -brokers and -topic it counts a topic of a running Kafka until it is
// interrupted, and can write the totals to another topic: a plain output, at
// least once, so the next run writes all totals again.
//
// The files: job.go is the Statemill job, and all that one needs to read to
// learn the library; results.go is what becomes of its outputs; count.go runs it
// in each way; folder.go looks at the checkpoint folder before; keep.go is what the
// small Kafka needs to go on after a kill; produce.go and broker.go write to Kafka,
// topic.go reads it by other means; input.go finds the text; words.go says what a
// word is; verify.go counts again, in another way; top.go and stats.go make what is
// printed; main.go is the command line.
package main
