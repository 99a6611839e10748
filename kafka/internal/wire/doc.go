// Package wire speaks the few Kafka requests that a direct stream needs, over
// connections that kafka-go's Dialer makes (TLS and SASL are its work): ApiVersions,
// Metadata, ListOffsets, OffsetForLeaderEpoch and Fetch; and those of a producer with
// transactions and of a group's offsets.
//
// [Conn] is one connection: one request at a time, from any goroutine but one
// after the other. Every call is bounded in time: it ends soon after its context
// does, and when the broker sends nothing for the connection's timeout. After an
// error other than an [Error] of the broker the connection is [Conn.Broken] and
// must be closed.
//
// Answers are checked byte by byte: a server that is no Kafka, or a hostile one,
// gives an error and costs memory by what it sends, whatever its lengths say: at most
// 64 KiB, or what a fetch asked for, before the bytes come. A fetch answer's buffer is
// never used again, so that records can keep slices of it.
//
// It keeps no pool, retries nothing, and starts no goroutine.
package wire
