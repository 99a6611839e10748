package codec

// A Codec turns values of T into bytes and back. It may be used from any
// goroutine.
type Codec[T any] interface {
	// ID names the encoding. It is stored beside the data, so it never changes
	// for the same bytes; it names no Go type.
	ID() string
	// Append appends the encoding of v to dst and returns the longer slice. On
	// error dst is returned as it was given.
	Append(dst []byte, v T) ([]byte, error)
	// Decode returns the value that src encodes. src must hold exactly one
	// value. The result shares no memory with src.
	Decode(src []byte) (T, error)
}
