// Command job is the program that the kill -9 loop kills: a word count over a Kafka topic
// with a checkpoint, and every running count written to an exactly-once sink.
//
// It tells on its standard output, a line at a time, what phase of which epoch it
// has reached, so that whoever kills it knows where the kill fell. On request it
// dawdles in one phase: every file call of it, or every call of the user function,
// takes a few milliseconds longer, and the kill is sure to fall there.
//
// With -serve it is an embedded broker instead, until its standard input ends.
package main
