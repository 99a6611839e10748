// Wordcount counts the words of real text with mapWithState, and proves the
// result.
//
// Without arguments it reads the source tree of the installed Go toolchain;
// give it files or folders, or - for the standard input. The text is cut into
// many batches; the running count of every word is state, spread over several
// partitions. While it runs, progress goes to the standard error and the top
// words of batches to the standard output. At the end every total is compared
// with a plain, independent count of the same text:
//
//	verified: 312345 keys exact
//
// It ends by itself. Exit 0: every total was exact. Exit 1: one was not, or
// the text cannot be read, or the run failed. Exit 2: wrong usage.
//
// The files: job.go is the Statemill job, and all that one needs to read to
// learn the library; input.go finds the text; words.go says what a word is;
// verify.go counts again, in another way; top.go and stats.go make what is
// printed; main.go holds it together.
package main
