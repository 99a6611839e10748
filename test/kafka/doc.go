// Package kafkatest is the table of the Kafka tests: each of its tests runs on the
// embedded broker and, when STATEMILL_KAFKA names one ("host:port"), on a real one
// too. It has tests only.
//
// What the embedded broker does not do (compaction, and memory of its own) is
// tested on the real one alone. Hand-made shapes of logs are tested in package
// kafka, without any broker.
package kafkatest
