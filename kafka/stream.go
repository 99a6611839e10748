package kafka

import "github.com/statemill/statemill/dstream"

// DirectStream makes the stream of a source that NewSource makes: the records of
// all partitions of the topics, one RDD partition for each of theirs. The name is
// the source's name.
func DirectStream(ssc *dstream.StreamingContext, name string, opts ...SourceOption) *dstream.DStream[Record] {
	return dstream.From(ssc, name, NewSource(opts...))
}
