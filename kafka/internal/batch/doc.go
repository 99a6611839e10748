// Package batch decodes Kafka's record batches (format v2) in place.
//
// [Decoder] walks the bytes of one partition in a fetch answer and gives one
// [Record] after the other; keys, values and headers are slices of the answer, or
// of a fresh buffer where the batch was compressed. Nothing is allocated for a
// record.
//
// What holds, whatever the bytes are: no panic, offsets that only grow, memory
// bounded by the inflation limit, that of headers too ([HeaderSize]). A batch that was
// cut at the end of the answer is left for the next fetch. Control markers never come
// out; aborted records do not in read_committed. [Decoder.Offset] moves over markers,
// holes and empty batches.
//
// It does no I/O, knows no topic, and does not read the formats that brokers
// before Kafka 0.11 wrote.
package batch
