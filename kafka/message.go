package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/statemill/statemill/kafka/internal/batch"
)

// Message is a record to be written.
type Message struct {
	// Key and Value are null where they are nil. A null value is a tombstone; a
	// message without a key goes to a partition by the place of its row.
	Key, Value []byte
	// Headers are written in their order.
	Headers []Header
	// Time is written in milliseconds; the zero time stands for the time of
	// writing.
	Time time.Time
}

// keyValues are headers as record batches take them.
func keyValues(headers []Header) (out []batch.KeyValue) {
	for _, h := range headers {
		out = append(out, batch.KeyValue(h))
	}
	return out
}

// A message as a row of a sink: a byte of flags, then what they say is there.
const (
	hasKey = 1 << iota
	hasValue
	hasTime
	hasHeaders
)

// appendMessage appends the row of a message. Equal messages give equal bytes.
func appendMessage(dst []byte, m Message) ([]byte, error) {
	at := len(dst)
	dst = append(dst, 0)
	if m.Key != nil {
		dst[at] |= hasKey
		dst = appendCounted(dst, m.Key)
	}
	if m.Value != nil {
		dst[at] |= hasValue
		dst = appendCounted(dst, m.Value)
	}
	if !m.Time.IsZero() {
		if m.Time.Before(time.UnixMilli(0)) {
			return dst, fmt.Errorf("the message's time %v is before 1970, which Kafka cannot store", m.Time)
		}
		if m.Time.After(time.UnixMilli(math.MaxInt64)) {
			return dst, fmt.Errorf("the message's time %v is more milliseconds after 1970 than Kafka can store", m.Time)
		}
		dst[at] |= hasTime
		dst = binary.AppendUvarint(dst, uint64(m.Time.UnixMilli()))
	}
	if len(m.Headers) > 0 {
		dst[at] |= hasHeaders
		dst = binary.AppendUvarint(dst, uint64(len(m.Headers)))
		for _, h := range m.Headers {
			dst = appendCounted(dst, []byte(h.Key))
			if h.Value == nil {
				dst = append(dst, 0)
				continue
			}
			dst = append(dst, 1)
			dst = appendCounted(dst, h.Value)
		}
	}
	return dst, nil
}

func appendCounted(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

var errRow = errors.New("the row is no message: rows of a Kafka sink are made by its Topic")

// messageOf reads a row; the message shares its bytes.
func messageOf(row []byte) (m Message, err error) {
	if len(row) == 0 || row[0]&^(hasKey|hasValue|hasTime|hasHeaders) != 0 {
		return m, errRow
	}
	flags, r := row[0], rowReader{row[1:], false}
	if flags&hasKey != 0 {
		m.Key = r.counted()
	}
	if flags&hasValue != 0 {
		m.Value = r.counted()
	}
	if flags&hasTime != 0 {
		ms := r.uvarint()
		if ms > math.MaxInt64 { // as a signed number it would lie before 1970
			return m, errRow
		}
		m.Time = time.UnixMilli(int64(ms)).UTC()
	}
	if flags&hasHeaders != 0 {
		n := r.uvarint()
		if n == 0 || n > uint64(len(r.b)) {
			return m, errRow
		}
		for range n {
			h := Header{Key: string(r.counted())}
			switch r.uvarint() {
			case 0:
			case 1:
				h.Value = r.counted()
			default:
				r.bad = true
			}
			if r.bad {
				break
			}
			m.Headers = append(m.Headers, h)
		}
	}
	if r.bad || len(r.b) > 0 {
		return m, errRow
	}
	return m, nil
}

type rowReader struct {
	b   []byte
	bad bool
}

func (r *rowReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// counted is never nil.
func (r *rowReader) counted() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return []byte{}
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}
