package batch

import (
	"encoding/binary"
	"math"
)

// leastRecord is a record of null key and value: six fields of one byte.
const leastRecord = 6

// record decodes the open batch's next record; false means that it lies below the
// offset that was asked for. Nearly all lengths and deltas take one byte, which is
// read in place: this is the inner loop of every job.
func (d *Decoder) record(r *Record) (bool, error) {
	b := d.recs
	var length, time, delta, headers int64
	i := 0
	if len(b) > 0 && b[0] < 0x80 {
		length, i = unzigzag(b[0]), 1
	} else {
		length, i = varint(b, 0)
	}
	if i < 0 || length < leastRecord || length > int64(len(b)-i) {
		return false, d.fail(ErrCorrupt, "a record of %d bytes where %d are left, %d records to come", length, len(b), d.left)
	}
	end := i + int(length)
	d.recs = b[end:]
	b = b[i+1 : end : end] // behind the attributes, which have no use
	if b[0] < 0x80 {
		time, i = unzigzag(b[0]), 1
	} else {
		time, i = varint(b, 0)
	}
	if i >= 0 && i < len(b) && b[i] < 0x80 {
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
	d.bytes += int64(end)
	if offset < d.next {
		return false, nil
	}
	key, i := field(b, i)
	if i < 0 {
		return false, d.fail(ErrCorrupt, "the key of offset %d is cut", offset)
	}
	value, i := field(b, i)
	if i < 0 {
		return false, d.fail(ErrCorrupt, "the value of offset %d is cut", offset)
	}
	if i == len(b)-1 && b[i] == 0 {
		r.Headers, r.NumHeaders = nil, 0
	} else {
		if headers, i = varint(b, i); i < 0 || headers < 0 || headers > int64(len(b)-i)/2 {
			return false, d.fail(ErrCorrupt, "%d headers at offset %d", headers, offset)
		}
		if headers == 0 {
			return false, d.fail(ErrCorrupt, "%d bytes follow the record at offset %d", len(b)-i, offset)
		}
		if !headersOK(b[i:], int(headers)) {
			return false, d.fail(ErrCorrupt, "the headers of offset %d are cut", offset)
		}
		r.Headers, r.NumHeaders = b[i:], int(headers)
	}
	if d.fixedTime {
		time = 0
	}
	r.Offset, r.Time, r.Key, r.Value = offset, d.time0+time, key, value
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

// field reads a length and as many bytes, from b[i] on; -1 is null. It returns
// where the field ends, or -1 if it is cut.
func field(b []byte, i int) ([]byte, int) {
	var n int64
	if uint(i) < uint(len(b)) && b[i] < 0x80 {
		n, i = unzigzag(b[i]), i+1
	} else if n, i = varint(b, i); i < 0 {
		return nil, -1
	}
	if n < 0 || n > int64(len(b)-i) {
		if n == -1 {
			return nil, i
		}
		return nil, -1
	}
	end := i + int(n)
	return b[i:end:end], end
}

// unzigzag is the value of a varint of one byte.
func unzigzag(c byte) int64 { return int64(c>>1) ^ -int64(c&1) }

// varint reads a zigzag varint at b[i] and returns where it ends, or -1.
func varint(b []byte, i int) (int64, int) {
	if i < 0 || i >= len(b) {
		return math.MinInt64, -1
	}
	v, n := binary.Varint(b[i:])
	if n <= 0 {
		return math.MinInt64, -1
	}
	return v, i + n
}
