// Topn keeps a chart: the N terms that were searched for most within the last
// while, renewed with every batch.
//
// Two steps. ReduceByKeyAndWindowInverse counts the searches of the last -window
// by term: what a batch brings is added, what leaves the window is taken away
// again, so a batch costs what it holds and not what the window holds. Then
// Transform makes a chart of the counts with rdd.Top, which finds the N greatest
// without sorting the others; of equal counts the term that comes first in the
// alphabet stands higher.
//
//	go run ./examples/topn
//	go run ./examples/topn -n 5 -window 1s
//	go run ./examples/topn -checkpoint /tmp/topn -interval 1s   # Ctrl-C, and again
//
// The searches are a small script, one list a batch, so that the program needs
// nothing and ends by itself. It prints a chart a batch, with what rose (+), fell
// (-) or is new (*), and checks at the end that the window has run empty: every
// search that was added was taken away once. With -checkpoint the window outlives the
// process: what an earlier run has added, a later one takes away.
//
// job.go is the Statemill job, chart.go a chart as text, main.go the script and
// the printing.
package main
