package kafka

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/dstream"
)

// Decoder makes a T of the bytes of a key or a value. Decode must depend on its
// argument alone; it may be called from several goroutines.
//
// Functions that use one, such as [Values], go into dstream.MapErr and its like: what
// cannot be decoded fails its record with a [DecodeError], and the job's record policy
// (dstream.WithRecordPolicy, dstream.DeadLetters) decides what comes then.
type Decoder[T any] struct {
	Name   string // for messages: "json", "msgpack", …
	Decode func(b []byte) (T, error)
}

// ErrTombstone: a null was met where a value is needed.
var ErrTombstone = errors.New("the value is null (a tombstone)")

// errNullKey: a record without a key.
var errNullKey = errors.New("the key is null")

// DecodeError is a key or value that cannot be decoded.
type DecodeError struct {
	Topic     string
	Partition int32
	Offset    int64
	Part      string // "key" or "value"
	Decoder   string // its name
	Size      int    // bytes of the part
	Err       error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("topic %q partition %d offset %d: the %s (%d bytes) is no %s: %v", e.Topic, e.Partition, e.Offset, e.Part, e.Size, e.Decoder, e.Err)
}

// Unwrap gives the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// String decodes text as it is, into a copy.
func String() Decoder[string] {
	return Decoder[string]{"text", func(b []byte) (string, error) { return string(b), nil }}
}

// Bytes gives the record's own bytes: read-only, and they keep their fetch buffer in
// memory (see [Record]).
func Bytes() Decoder[[]byte] {
	return Decoder[[]byte]{"bytes", func(b []byte) ([]byte, error) { return b, nil }}
}

// JSON decodes one JSON value by the rules of encoding/json: fields that T lacks are
// passed over. [StrictJSON] refuses them.
func JSON[T any]() Decoder[T] {
	return Decoder[T]{"json", func(b []byte) (v T, err error) {
		err = json.Unmarshal(b, &v)
		return v, err
	}}
}

// StrictJSON is JSON, but a field that T lacks is an error.
func StrictJSON[T any]() Decoder[T] {
	return Decoder[T]{"json", func(b []byte) (v T, err error) {
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err = d.Decode(&v); err == nil && len(bytes.TrimSpace(b[d.InputOffset():])) > 0 {
			err = fmt.Errorf("more follows after byte %d", d.InputOffset())
		}
		return v, err
	}}
}

// Msgpack decodes one MessagePack value, as any writer of MessagePack makes it: T may be a
// number, a string, bytes or a time too. Integers are taken in every width that holds
// them. By the rules of package codec a field that T lacks is an error, and a T that it
// refuses fails every record with a codec.TypeError. What codec.For has encoded is the
// same for structs, maps and slices alone; its own forms of scalars are read by [Coded].
func Msgpack[T any]() Decoder[T] {
	made := sync.OnceValues(msgpackOf[T])
	return Decoder[T]{"msgpack", func(b []byte) (T, error) {
		decode, err := made()
		if err != nil {
			var none T
			return none, err
		}
		return decode(b)
	}}
}

func msgpackOf[T any]() (func(b []byte) (T, error), error) {
	c, err := codec.For[T]()
	if err != nil {
		return nil, err
	}
	if c.ID() == "msgpack" {
		return c.Decode, nil
	}
	inside, err := codec.For[alone[T]]()
	return func(b []byte) (T, error) {
		a, err := inside.Decode(append([]byte{arrayOfOne}, b...))
		return a.Value, err
	}, err
}

// alone is an array of one value. Inside of others package codec has scalars in
// MessagePack.
type alone[T any] struct {
	//lint:ignore U1000 package codec looks for it
	_msgpack struct{} `msgpack:",as_array"`
	Value    T
}

const arrayOfOne = 0x91

// Coded decodes what a codec has encoded.
func Coded[T any](c codec.Codec[T]) Decoder[T] { return Decoder[T]{c.ID(), c.Decode} }

// Values gives each record's value, for dstream.MapErr. A tombstone is an ErrTombstone:
// where there are some, see [ValuesOrNone] and [Pairs].
func Values[T any](d Decoder[T]) func(Record) (T, error) {
	return func(r Record) (T, error) {
		if r.Value == nil {
			var none T
			return none, fault(&r, "value", d.Name, nil, ErrTombstone)
		}
		return decode(&r, "value", d, r.Value)
	}
}

// ValuesOrNone gives each record's value, for dstream.MapErr; none for a tombstone.
func ValuesOrNone[T any](d Decoder[T]) func(Record) (dstream.Option[T], error) {
	return func(r Record) (dstream.Option[T], error) {
		if r.Value == nil {
			return dstream.None[T](), nil
		}
		v, err := decode(&r, "value", d, r.Value)
		return dstream.Some(v), err
	}
}

// Pairs gives each record's key and value, for dstream.MapPairErr; the value of a
// tombstone is none, so that a function can tell it from an empty value and from a
// timeout. A null key is an error.
func Pairs[K, V any](key Decoder[K], value Decoder[V]) func(Record) (K, dstream.Option[V], error) {
	values := ValuesOrNone(value)
	return func(r Record) (k K, v dstream.Option[V], err error) {
		if r.Key == nil {
			return k, v, fault(&r, "key", key.Name, nil, errNullKey)
		}
		if k, err = decode(&r, "key", key, r.Key); err != nil {
			return k, v, err
		}
		v, err = values(r)
		return k, v, err
	}
}

func decode[T any](r *Record, part string, d Decoder[T], b []byte) (T, error) {
	v, err := d.Decode(b)
	if err != nil {
		err = fault(r, part, d.Name, b, err)
	}
	return v, err
}

func fault(r *Record, part, decoder string, b []byte, err error) error {
	return &DecodeError{r.Topic, r.Partition, r.Offset, part, decoder, len(b), err}
}
