// Package tools proves that Statemill and Kafka's own command line programs
// understand each other, on a real broker: what the console producer writes is
// counted right, in every codec, and records land where partitioner.Murmur2 says.
// It has tests only. They skip unless STATEMILL_KAFKA (bootstrap address) and
// STATEMILL_KAFKA_TOOL (test/kafka/broker/tool.sh) are set, as make test-kafka does.
package tools
