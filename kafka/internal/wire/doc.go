// Package wire speaks the few Kafka requests that a direct stream needs, over
// connections that kafka-go's Dialer makes (TLS and SASL are its work):
// ApiVersions, Metadata, ListOffsets and Fetch.
//
// [Conn] is one connection: one request at a time, from any goroutine but one
// after the other. Every call is bounded in time: it ends soon after its context
// does, and when the broker sends nothing for the connection's timeout. After an
// error other than an [Error] of the broker the connection is [Conn.Broken] and
// must be closed.
//
// Answers are checked byte by byte: a server that is no Kafka, or a hostile one,
// gives an error and costs no more memory than it sends. A fetch answer's buffer
// is never used again, so that records can keep slices of it.
//
// It keeps no pool, retries nothing, and starts no goroutine.
package wire
