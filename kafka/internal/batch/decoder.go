package batch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"

	"github.com/statemill/statemill/internal/sabotage"
)

// Record is one record. Its slices are read-only; they stay valid as long as they
// are referenced.
type Record struct {
	Offset int64
	// Time is in milliseconds since the Unix epoch; -1 if the record has none.
	Time int64
	// Key and Value are nil where Kafka has null, and empty where it has "".
	Key, Value []byte
	// Headers is the encoded form of NumHeaders headers; see EachHeader.
	Headers    []byte
	NumHeaders int
}

// Aborted is a transaction that ended in an abort: what Producer wrote from
// offset First to its next marker.
type Aborted struct{ Producer, First int64 }

// The header of a batch, by byte.
const (
	atLength   = 8
	atLeader   = 12
	atMagic    = 16
	atCRC      = 17
	atAttr     = 21
	atLast     = 23
	atTime     = 27
	atMaxTime  = 35
	atProducer = 43
	atCount    = 57
	headerSize = 61
	// lengthFrom is where the bytes that the length field counts begin.
	lengthFrom = 12
)

const (
	attrCodec     = 7
	attrLogAppend = 1 << 3
	attrTxn       = 1 << 4
	attrControl   = 1 << 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Decoder walks one partition's part of a fetch answer. Its zero value needs
// Reset; it can be reset for the next answer and belongs to one goroutine.
type Decoder struct {
	rest []byte // batches to come
	recs []byte // the open batch's records
	done int    // how many of these bytes were decoded
	left int    // how many records are to come
	at   place  // the current record's

	next int64 // offset to ask for when all so far is done
	err  error

	// Of the open batch.
	base, last int64
	least      int64 // the next record's offset is at least this
	heads      int64 // bytes that its headers so far take in memory, beside its own
	time0      int64
	fixedTime  bool // time0 is every record's time

	committed bool
	aborted   []Aborted // those not reached yet
	open      map[int64]bool

	inflater
	records, bytes int64
}

// Reset begins with the bytes of one answer. from is the offset that was asked
// for: records below it are passed over. With committed, records of the aborted
// transactions are left out; aborted may be reordered. maxInflated bounds the
// bytes of one batch after decompression, with HeaderSize for each header.
func (d *Decoder) Reset(data []byte, from int64, committed bool, aborted []Aborted, maxInflated int) {
	d.rest, d.recs, d.left, d.err = data, nil, 0, nil
	d.next = from
	d.committed, d.aborted = committed, aborted
	if len(aborted) > 1 { // brokers list them by their ends
		slices.SortFunc(aborted, func(a, b Aborted) int { return cmp.Compare(a.First, b.First) })
	}
	clear(d.open)
	d.inflater.reset(maxInflated)
	d.records, d.bytes = 0, 0
}

// Offset is the offset to ask for next: past every record given so far, and past
// what holds none.
func (d *Decoder) Offset() int64 { return d.next }

// Seen tells how many records were decoded since Reset, those passed over too,
// and how many bytes they took after decompression, with HeaderSize for each header.
func (d *Decoder) Seen() (records, bytes int64) { return d.records, d.bytes }

// Held is how many bytes of answers and of decompressed batches the decoder keeps in
// memory, without a scratch buffer of a few mebibytes.
func (d *Decoder) Held() int {
	held := cap(d.rest) + cap(d.recs)
	if cap(d.scratch) > keepScratch {
		held += cap(d.scratch)
	}
	return held
}

// Need is how many bytes the batch that was cut at the end of the answer has in
// all; 0 if the answer ends with a whole batch or within a batch's length.
func (d *Decoder) Need() int {
	if len(d.rest) < lengthFrom {
		return 0
	}
	return int(int32(binary.BigEndian.Uint32(d.rest[atLength:]))) + lengthFrom
}

// Next gives the next record, and false when there is none in this answer. The
// error is an *Error; it stays.
func (d *Decoder) Next(r *Record) (bool, error) {
	more, err := d.Advance()
	if more {
		*r = d.Record()
	}
	return more, err
}

// Advance is Next without the record: Record, or At, Time, Key, Value and NumHeaders
// give it until the next call.
func (d *Decoder) Advance() (bool, error) {
	for {
		for d.left > 0 {
			ok, err := d.record()
			if ok || err != nil {
				return ok, err
			}
		}
		if d.recs != nil {
			if n := len(d.recs) - d.done; n != 0 {
				return false, d.fail(ErrCorrupt, "%d bytes follow its last record", n)
			}
			d.recs = nil
			d.next = d.last + 1 // holes at the end of a batch too
		}
		if more, err := d.batch(); !more || err != nil {
			return false, err
		}
	}
}

// batch opens the next batch that has records to give; it passes over the others.
func (d *Decoder) batch() (bool, error) {
	if d.err != nil {
		return false, d.err
	}
	for {
		b := d.rest
		if len(b) <= atMagic {
			return false, nil
		}
		be := binary.BigEndian
		d.base = int64(be.Uint64(b))
		if magic := b[atMagic]; magic < 2 {
			return false, d.fail(ErrOldFormat, "it has format v%d (magic %d), Statemill reads v2: copy the topic with a client of Kafka 0.11 or later", magic, magic)
		} else if magic > 2 {
			return false, d.fail(ErrCorrupt, "magic byte %d", magic)
		}
		length := int64(int32(be.Uint32(b[atLength:])))
		if length < headerSize-lengthFrom {
			return false, d.fail(ErrCorrupt, "length %d", length)
		}
		if length+lengthFrom > int64(len(b)) {
			return false, nil // cut: the next fetch brings it whole
		}
		b, d.rest = b[:length+lengthFrom], b[length+lengthFrom:]
		delta := int64(int32(be.Uint32(b[atLast:])))
		if d.base < 0 || delta < 0 || d.base > math.MaxInt64-1-delta {
			return false, d.fail(ErrCorrupt, "last offset is %d behind the first", delta)
		}
		d.last = d.base + delta
		if crc32.Checksum(b[atAttr:], castagnoli) != be.Uint32(b[atCRC:]) && !sabotage.On("no-crc") {
			return false, d.fail(ErrCRC, "%d bytes", len(b))
		}
		if d.last < d.next { // below the offset that was asked for
			if !sabotage.On("skipped-markers-lost") {
				d.track(b)
			}
			continue
		}
		ok, err := d.enter(b)
		if ok || err != nil {
			return ok, err
		}
		d.next = d.last + 1
	}
}

// enter makes b the open batch, unless it holds nothing to give.
func (d *Decoder) enter(b []byte) (bool, error) {
	be := binary.BigEndian
	attr, producer := be.Uint16(b[atAttr:]), int64(be.Uint64(b[atProducer:]))
	if d.track(b) && !sabotage.On("markers-pass") {
		return false, nil
	}
	if d.committed && attr&attrTxn != 0 && d.open[producer] && !sabotage.On("aborted-pass") {
		return false, nil
	}
	n := int64(int32(be.Uint32(b[atCount:])))
	if n < 0 {
		return false, d.fail(ErrCorrupt, "%d records", n)
	}
	recs, err := b[headerSize:], error(nil)
	if codec := attr & attrCodec; codec != 0 && n > 0 {
		if recs, err = d.inflate(int(codec), recs); err != nil {
			return false, d.inflateError(codec, len(b)-headerSize, err)
		}
	}
	d.bytes += headerSize
	if n == 0 {
		return false, nil // compaction left the batch for its sequence numbers
	}
	d.recs, d.done, d.left, d.heads = recs, 0, int(n), 0
	d.least = d.base
	d.time0, d.fixedTime = int64(be.Uint64(b[atTime:])), false
	if attr&attrLogAppend != 0 {
		d.time0, d.fixedTime = int64(be.Uint64(b[atMaxTime:])), true
	}
	return true, nil
}

// track keeps which aborted transactions are open, and says whether b is a marker.
func (d *Decoder) track(b []byte) (marker bool) {
	for len(d.aborted) > 0 && d.aborted[0].First <= d.last {
		if d.open == nil {
			d.open = map[int64]bool{}
		}
		d.open[d.aborted[0].Producer] = true
		d.aborted = d.aborted[1:]
	}
	if binary.BigEndian.Uint16(b[atAttr:])&attrControl == 0 {
		return false
	}
	if !sabotage.On("markers-pass") {
		delete(d.open, int64(binary.BigEndian.Uint64(b[atProducer:]))) // COMMIT or ABORT ends the producer's transaction
	}
	return true
}

// Whole cuts off the batch that is not whole, and tells the offset behind what is
// left; -1 if that is nothing.
func Whole(data []byte) (whole []byte, next int64) {
	end := 0
	next = -1
	walk(data, func(at, size int, base, last int64) {
		if at == end {
			end, next = at+size, last+1
		}
	})
	return data[:end], next
}

// From cuts off the batches that end before an offset. What is not decoded tells
// nothing of transactions: it is for answers without aborted ones.
func From(data []byte, offset int64) []byte {
	begin := 0
	walk(data, func(at, size int, base, last int64) {
		if at == begin && last < offset {
			begin = at + size
		}
	})
	return data[begin:]
}

// Before cuts off what begins at an offset or later, whole or not, damaged or not. It trusts
// the headers before that.
func Before(data []byte, offset int64) []byte {
	be := binary.BigEndian
	for at := 0; len(data)-at >= atLength; {
		b := data[at:]
		if int64(be.Uint64(b)) >= offset {
			return data[:at]
		}
		if len(b) < headerSize || b[atMagic] != 2 {
			break
		}
		size := int64(int32(be.Uint32(b[atLength:]))) + lengthFrom
		if size < headerSize || size > int64(len(b)) {
			break
		}
		at += int(size)
	}
	return data
}

// Span tells the bytes of the whole batches in an answer and the offsets that they
// cover. It trusts the headers and reads nothing else.
func Span(data []byte) (bytes, offsets int64) {
	first, last := int64(-1), int64(-1)
	walk(data, func(at, size int, base, end int64) {
		if first < 0 {
			first = base
		}
		last = end
		bytes += int64(size)
	})
	if first < 0 {
		return 0, 0
	}
	return bytes, max(0, last-first+1)
}

// First is the bytes of the first batch in an answer, 0 if it is not whole. It trusts the
// header.
func First(data []byte) (bytes int) {
	walk(data, func(at, size int, _, _ int64) {
		if at == 0 {
			bytes = size
		}
	})
	return bytes
}

// Leader is the greatest leader epoch under which a whole batch in an answer was
// written that begins before until; -1 if none tells one. It trusts the headers.
func Leader(data []byte, until int64) int32 {
	epoch := int32(-1)
	walk(data, func(at, size int, base, last int64) {
		if base < until {
			epoch = max(epoch, int32(binary.BigEndian.Uint32(data[at+atLeader:])))
		}
	})
	return epoch
}

// Trim cuts off the batches that begin at until or later, and the batch that is not
// whole, if there is a whole one to keep. Where much is cut off, the rest moves to a
// buffer of its own: records keep their buffer in memory. What lies at the begin
// stays, whatever its header says: the decoder checks it before it passes over it.
func Trim(data []byte, until int64) []byte {
	end := 0
	walk(data, func(at, size int, base, last int64) {
		if at == end && base < until {
			end = at + size
		}
	})
	if end > 0 && end < len(data)/4*3 {
		return bytes.Clone(data[:end])
	}
	return data
}

// walk visits the whole batches by their headers, up to one of another format.
func walk(data []byte, visit func(at, size int, base, last int64)) {
	be := binary.BigEndian
	for at := 0; len(data)-at >= headerSize; {
		b := data[at:]
		size := int64(int32(be.Uint32(b[atLength:]))) + lengthFrom
		if size < headerSize || size > int64(len(b)) || b[atMagic] != 2 {
			return
		}
		base := int64(be.Uint64(b))
		visit(at, int(size), base, base+int64(int32(be.Uint32(b[atLast:]))))
		at += int(size)
	}
}
