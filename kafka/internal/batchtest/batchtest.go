// Package batchtest makes record batches by hand, of every shape that a broker may
// send: with holes, empty, of a transaction, with a marker, compressed, damaged.
//
// [Batch] is a batch and Append its bytes. It is for tests only, checks nothing and
// panics when a compressor fails.
package batchtest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The codecs of a Batch.
const (
	None = iota
	Gzip
	Snappy
	LZ4
	Zstd
	// Xerial is snappy in the frames of the Java client.
	Xerial
)

// Codecs are all of them by name.
func Codecs() map[string]int {
	return map[string]int{"none": None, "gzip": Gzip, "snappy": Snappy, "lz4": LZ4, "zstd": Zstd, "xerial": Xerial}
}

// Header is a header of a Record.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record; Delta is its offset behind the batch's base.
type Record struct {
	Delta      int
	TimeDelta  int64
	Key, Value []byte
	Headers    []Header
}

// Batch is one record batch. Last is the last offset behind Base; at least that of
// the last record.
type Batch struct {
	Base          int64
	Last          int
	Time, MaxTime int64
	Codec         int
	Producer      int64 // 0 is none
	Leader        int32 // epoch
	Txn, Control  bool
	LogAppend     bool
	Records       []Record
}

// Values is a batch of records with the given values at successive offsets.
func Values(base int64, values ...string) Batch {
	b := Batch{Base: base}
	for i, v := range values {
		b.Records = append(b.Records, Record{Delta: i, Value: []byte(v)})
	}
	return b
}

// Empty is what compaction leaves of a batch with the offsets base to last.
func Empty(base, last int64) Batch { return Batch{Base: base, Last: int(last - base)} }

// Marker ends a producer's transaction.
func Marker(offset, producer int64, commit bool) Batch {
	kind := byte(0)
	if commit {
		kind = 1
	}
	return Batch{Base: offset, Producer: producer, Txn: true, Control: true,
		Records: []Record{{Key: []byte{0, 0, 0, kind}, Value: make([]byte, 6)}}}
}

// Append appends the bytes of the batch.
func (b Batch) Append(dst []byte) []byte {
	var body []byte
	last := b.Last
	for _, r := range b.Records {
		body = r.append(body)
		last = max(last, r.Delta)
	}
	return b.wrap(dst, compress(b.Codec, body), last, len(b.Records))
}

// AppendBody is Append with other bytes in the place of the records.
func (b Batch) AppendBody(dst, body []byte, records int) []byte {
	return b.wrap(dst, body, max(b.Last, records-1), records)
}

func (b Batch) wrap(dst, body []byte, last, records int) []byte {
	be := binary.BigEndian
	attr := uint16(b.Codec)
	if b.Codec == Xerial {
		attr = Snappy
	}
	for bit, on := range map[int]bool{3: b.LogAppend, 4: b.Txn, 5: b.Control} {
		if on {
			attr |= 1 << bit
		}
	}
	producer := b.Producer
	if producer == 0 {
		producer = -1
	}
	at := len(dst)
	dst = be.AppendUint64(dst, uint64(b.Base))
	dst = be.AppendUint32(dst, uint32(49+len(body)))
	dst = be.AppendUint32(dst, uint32(b.Leader))
	dst = append(dst, 2)
	dst = be.AppendUint32(dst, 0) // checksum, below
	dst = be.AppendUint16(dst, attr)
	dst = be.AppendUint32(dst, uint32(last))
	dst = be.AppendUint64(dst, uint64(b.Time))
	dst = be.AppendUint64(dst, uint64(b.MaxTime))
	dst = be.AppendUint64(dst, uint64(producer))
	dst = be.AppendUint16(dst, 0)       // producer epoch
	dst = be.AppendUint32(dst, 1<<32-1) // sequence
	dst = be.AppendUint32(dst, uint32(records))
	dst = append(dst, body...)
	Seal(dst[at:])
	return dst
}

// Seal writes the checksum of the one batch in b, after a change of its bytes.
func Seal(b []byte) {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
}

func (r Record) append(dst []byte) []byte {
	b := []byte{0}
	b = binary.AppendVarint(b, r.TimeDelta)
	b = binary.AppendVarint(b, int64(r.Delta))
	b = appendField(b, r.Key)
	b = appendField(b, r.Value)
	b = binary.AppendVarint(b, int64(len(r.Headers)))
	for _, h := range r.Headers {
		b = appendField(b, append([]byte{}, h.Key...))
		b = appendField(b, h.Value)
	}
	dst = binary.AppendVarint(dst, int64(len(b)))
	return append(dst, b...)
}

func appendField(b, v []byte) []byte {
	if v == nil {
		return binary.AppendVarint(b, -1)
	}
	b = binary.AppendVarint(b, int64(len(v)))
	return append(b, v...)
}

func compress(codec int, body []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch codec {
	case None:
		return body
	case Gzip:
		w = gzip.NewWriter(&out)
	case Snappy:
		return snappy.Encode(nil, body)
	case LZ4:
		w = lz4.NewWriter(&out)
	case Zstd:
		var err error
		if w, err = zstd.NewWriter(&out); err != nil {
			panic(err)
		}
	case Xerial:
		return xerial(body)
	}
	if _, err := w.Write(body); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// xerial cuts the body into blocks of 1 KiB, so that there are several.
func xerial(body []byte) []byte {
	out := append([]byte("\x82SNAPPY\x00"), 0, 0, 0, 1, 0, 0, 0, 1)
	for len(body) > 0 {
		n := min(len(body), 1024)
		block := snappy.Encode(nil, body[:n])
		out = binary.BigEndian.AppendUint32(out, uint32(len(block)))
		out = append(out, block...)
		body = body[n:]
	}
	return out
}
