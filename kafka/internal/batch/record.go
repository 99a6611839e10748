package batch

import (
	"encoding/binary"
	"math"

	"github.com/statemill/statemill/internal/sabotage"
)

// leastRecord is a record of null key and value: six fields of one byte.
const leastRecord = 6

// HeaderSize is what a header is taken to need in memory beside its bytes in the batch:
// its key and value as Go has them, and what a short key is rounded up to. A header
// takes two bytes in a batch, and compressed next to nothing, so that these count.
const HeaderSize = 48

// place is where the current record's fields lie in the open batch's records. It
// has no pointers: to store one for each field of each record costs a write barrier
// while garbage is collected, and with a fresh buffer for each fetch that is often.
type place struct {
	offset, time             int64
	keyAt, keyEnd            int // keyEnd is -1 for null
	valueAt, valueEnd        int
	headersAt, headersEnd, n int
}

// At is the offset of the record that Advance came to.
func (d *Decoder) At() int64 { return d.at.offset }

// Time is its time, as in Record.
func (d *Decoder) Time() int64 { return d.at.time }

// Key is its key.
func (d *Decoder) Key() []byte {
	if d.at.keyEnd < 0 {
		return nil
	}
	return d.recs[d.at.keyAt:d.at.keyEnd:d.at.keyEnd]
}

// Value is its value.
func (d *Decoder) Value() []byte {
	if d.at.valueEnd < 0 {
		return nil
	}
	return d.recs[d.at.valueAt:d.at.valueEnd:d.at.valueEnd]
}

// NumHeaders is how many headers it has.
func (d *Decoder) NumHeaders() int { return d.at.n }

// Record is the whole record.
func (d *Decoder) Record() Record {
	r := Record{Offset: d.At(), Time: d.Time(), Key: d.Key(), Value: d.Value(), NumHeaders: d.at.n}
	if r.NumHeaders > 0 {
		r.Headers = d.recs[d.at.headersAt:d.at.headersEnd:d.at.headersEnd]
	}
	return r
}

// record decodes the open batch's next record; false means that it lies below the
// offset that was asked for. Nearly all lengths and deltas take one byte, which is
// read in place: this is the inner loop of every job.
func (d *Decoder) record() (bool, error) {
	b, i := d.recs, d.done
	var length, time, delta int64
	if i < len(b) && b[i] < 0x80 {
		length, i = unzigzag(b[i]), i+1
	} else {
		length, i = varint(b, i)
	}
	if i < 0 || length < leastRecord || length > int64(len(b)-i) {
		return false, d.fail(ErrCorrupt, "a record of %d bytes where %d are left, %d records to come", length, len(b)-d.done, d.left)
	}
	end := i + int(length)
	b = b[:end]
	i++ // the attributes, which have no use
	if b[i] < 0x80 {
		time, i = unzigzag(b[i]), i+1
	} else {
		time, i = varint(b, i)
	}
	if uint(i) < uint(len(b)) && b[i] < 0x80 {
		delta, i = unzigzag(b[i]), i+1
	} else {
		delta, i = varint(b, i)
	}
	offset := d.base + delta
	if i < 0 || delta < 0 || offset < d.least || offset > d.last {
		return false, d.fail(ErrCorrupt, "a record's offset is %d behind the first, the least allowed is %d, the last %d", delta, d.least-d.base, d.last-d.base)
	}
	d.least = offset + 1
	d.left--
	d.records++
	d.bytes += int64(end - d.done)
	d.done = end
	if offset < d.next {
		return false, nil
	}
	at := &d.at
	if at.keyAt, at.keyEnd, i = span(b, i); i < 0 {
		return false, d.fail(ErrCorrupt, "the key of offset %d is cut", offset)
	}
	if at.valueAt, at.valueEnd, i = span(b, i); i < 0 {
		return false, d.fail(ErrCorrupt, "the value of offset %d is cut", offset)
	}
	if i == len(b)-1 && b[i] == 0 {
		at.headersEnd, at.n = -1, 0
	} else {
		var n int64
		if n, i = varint(b, i); i < 0 || n < 0 || n > int64(len(b)-i)/2 {
			return false, d.fail(ErrCorrupt, "%d headers at offset %d", n, offset)
		}
		if n == 0 {
			return false, d.fail(ErrCorrupt, "%d bytes follow the record at offset %d", len(b)-i, offset)
		}
		if !headersOK(b[i:], int(n)) {
			return false, d.fail(ErrCorrupt, "the headers of offset %d are cut", offset)
		}
		heads := n * HeaderSize
		d.bytes += heads
		if d.heads += heads; d.heads > int64(d.max-len(d.recs)) && !sabotage.On("decoded-headers-weigh-nothing") {
			return false, d.fail(ErrTooLarge, "its records of %d bytes have so many headers that they take more than %d in memory, at offset %d: raise MaxBatchBytes", len(d.recs), d.max, offset)
		}
		at.headersAt, at.headersEnd, at.n = i, end, int(n)
	}
	if d.fixedTime {
		time = 0
	}
	at.offset, at.time = offset, d.time0+time
	d.next = offset + 1
	return true, nil
}

// EachHeader calls f for each header of the record, in order, until f returns
// false. A null value is nil. The slices are the record's.
func (r *Record) EachHeader(f func(key, value []byte) bool) {
	b, i := r.Headers, 0
	for range r.NumHeaders {
		var key, value []byte
		if key, i = field(b, i); i < 0 {
			return
		}
		if value, i = field(b, i); i < 0 {
			return
		}
		if !f(key, value) {
			return
		}
	}
}

func headersOK(b []byte, n int) bool {
	i := 0
	for range n {
		var key []byte
		if key, i = field(b, i); i < 0 || key == nil {
			return false
		}
		if _, i = field(b, i); i < 0 {
			return false
		}
	}
	return i == len(b)
}

// span reads a length and finds the bytes that follow, from b[i] on; to is -1 for
// null. It returns where the next field begins, or -1 if this one is cut.
func span(b []byte, i int) (from, to, next int) {
	var n int64
	if uint(i) < uint(len(b)) && b[i] < 0x80 {
		n, i = unzigzag(b[i]), i+1
	} else if n, i = varint(b, i); i < 0 {
		return 0, -1, -1
	}
	if n < 0 || n > int64(len(b)-i) {
		if n == -1 {
			return 0, -1, i
		}
		return 0, -1, -1
	}
	return i, i + int(n), i + int(n)
}

// field is span with the bytes.
func field(b []byte, i int) ([]byte, int) {
	from, to, next := span(b, i)
	if to < 0 {
		return nil, next
	}
	return b[from:to:to], next
}

// unzigzag is the value of a varint of one byte.
func unzigzag(c byte) int64 { return int64(c>>1) ^ -int64(c&1) }

// varint reads a zigzag varint at b[i] and returns where it ends, or -1.
func varint(b []byte, i int) (int64, int) {
	if i < 0 || i >= len(b) {
		return math.MinInt64, -1
	}
	if i+1 < len(b) && b[i] >= 0x80 && b[i+1] < 0x80 { // offsets of all but the smallest batches
		u := uint64(b[i]&0x7f) | uint64(b[i+1])<<7
		return int64(u>>1) ^ -int64(u&1), i + 2
	}
	v, n := binary.Varint(b[i:])
	if n <= 0 {
		return math.MinInt64, -1
	}
	return v, i + n
}
