// Package wordcount proves that the program examples/wordcount and Kafka's own
// command line programs understand each other, on a real broker: what the console
// producer writes is counted, an interrupt is a success, and the console consumer
// reads the totals. It has tests only. They skip unless STATEMILL_KAFKA (bootstrap
// address) and STATEMILL_KAFKA_TOOL (test/kafka/broker/tool.sh) are set, as make
// test-kafka does.
package wordcount
