// Package crash kills a real program with kill -9, again and again, while it counts
// the words of a Kafka topic that is being written, and then holds what it has
// against the topic.
//
// The program (folder job) keeps its state in a checkpoint on disk and writes every
// running count to an exactly-once sink. A round starts it, lets it commit a few
// epochs, and kills it in a chosen phase of the next one: planning, computing,
// writing deltas, the sink, or the commit; some rounds kill it while it still
// recovers or changes its number of partitions, some at any time. After the last round a run goes on to the end of the
// topic. Then three things must agree for every word: the state, the rows of the
// sink (a word that came n times has the rows 1 … n, each once), and a count of the
// topic that another Kafka client read.
//
//	make crash   10 rounds on a real Apache Kafka
//	make soak    50 rounds
//
// Without STATEMILL_KAFKA it runs a few rounds on the embedded broker, which then is
// a process of its own. STATEMILL_CRASH_ROUNDS sets their number,
// STATEMILL_CRASH_SEED what is random.
package crash
