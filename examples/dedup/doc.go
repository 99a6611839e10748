// Dedup lets the first delivery of every event through and holds back its
// repetitions, for as long as it remembers the event.
//
// A producer that never got its acknowledgement sends an event again, so a
// consumer sees some events several times. The job keeps, for each event's ID,
// the batch time of its first delivery; a delivery with state is a repetition.
// The state cannot grow for ever, so it has a timeout: an ID of which nothing
// has come for longer than -remember is forgotten. (A repetition counts as a sign
// of life and prolongs it.) What comes after that is a first delivery again, so
// -remember must be longer than producers go on trying.
//
//	go run ./examples/dedup
//	go run ./examples/dedup -checkpoint /tmp/dedup -interval 1s -remember 5s   # Ctrl-C, and again
//
// The deliveries are a small script, one list a batch, so that the program needs
// nothing and ends by itself. With -checkpoint what it remembers and where it is
// in the script outlive the process: stopped or killed at any time, the next run
// goes on there, and no event is let through twice. What is printed is a plain
// output: a batch that a kill cut off is printed again.
//
// job.go is the Statemill job, main.go the script and the printing.
package main
