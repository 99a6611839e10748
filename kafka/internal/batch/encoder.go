package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec is how the records of a batch are compressed; the numbers are those of
// the format.
type Codec int8

// The codecs.
const (
	NoCodec Codec = 0
	Gzip    Codec = codecGzip
	Snappy  Codec = codecSnappy
	LZ4     Codec = codecLZ4
	Zstd    Codec = codecZstd
)

// Producer says who writes a batch. ID is -1 for nobody in particular: then Epoch
// and Sequence are -1 too.
type Producer struct {
	ID    int64
	Epoch int16
	// Sequence is the number of the batch's first record in its partition.
	Sequence int32
	// Transactional batches are visible when their transaction is committed.
	Transactional bool
}

// KeyValue is a header to be written. A nil Value is null.
type KeyValue struct {
	Key   string
	Value []byte
}

// Builder makes one record batch (format 2) after another. It belongs to one
// goroutine at a time and keeps its buffers.
type Builder struct {
	body    []byte
	record  []byte
	records int
	first   int64 // time of the first record
	latest  int64
}

// Len is the number of records so far, Size about the bytes that they take without
// compression.
func (b *Builder) Len() int { return b.records }

// Size is the length of the batch without compression.
func (b *Builder) Size() int { return headLen + len(b.body) }

// headLen is what stands before the records.
const headLen = 61

// Add adds a record; its offset is one more than that of the one before. time is
// in milliseconds. A nil key or value is null.
func (b *Builder) Add(time int64, key, value []byte, headers []KeyValue) {
	if b.records == 0 {
		b.first, b.latest = time, time
	}
	b.latest = max(b.latest, time)
	r := append(b.record[:0], 0) // attributes
	r = binary.AppendVarint(r, time-b.first)
	r = binary.AppendVarint(r, int64(b.records))
	r = appendBytes(r, key)
	r = appendBytes(r, value)
	r = binary.AppendVarint(r, int64(len(headers)))
	for _, h := range headers {
		r = binary.AppendVarint(r, int64(len(h.Key)))
		r = append(r, h.Key...)
		r = appendBytes(r, h.Value)
	}
	b.record = r
	b.body = binary.AppendVarint(b.body, int64(len(r)))
	b.body = append(b.body, r...)
	b.records++
}

func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	dst = binary.AppendVarint(dst, int64(len(b)))
	return append(dst, b...)
}

// Append appends the batch to dst. The builder keeps its records until Reset, so
// that a batch can be made again.
func (b *Builder) Append(dst []byte, p Producer, c Codec) ([]byte, error) {
	body, err := deflate(c, b.body)
	if err != nil {
		return dst, err
	}
	attributes := uint16(c)
	if p.Transactional {
		attributes |= 1 << 4
	}
	be := binary.BigEndian
	at := len(dst)
	dst = be.AppendUint64(dst, 0) // the broker gives the offsets
	dst = be.AppendUint32(dst, uint32(headLen-12+len(body)))
	dst = be.AppendUint32(dst, 1<<32-1) // leader epoch: the broker's
	dst = append(dst, 2)
	dst = be.AppendUint32(dst, 0) // checksum, below
	dst = be.AppendUint16(dst, attributes)
	dst = be.AppendUint32(dst, uint32(b.records-1))
	dst = be.AppendUint64(dst, uint64(b.first))
	dst = be.AppendUint64(dst, uint64(b.latest))
	dst = be.AppendUint64(dst, uint64(p.ID))
	dst = be.AppendUint16(dst, uint16(p.Epoch))
	dst = be.AppendUint32(dst, uint32(p.Sequence))
	dst = be.AppendUint32(dst, uint32(b.records))
	dst = append(dst, body...)
	be.PutUint32(dst[at+17:], crc32.Checksum(dst[at+21:], crc32.MakeTable(crc32.Castagnoli)))
	return dst, nil
}

// Reset forgets the records.
func (b *Builder) Reset() { b.body, b.records = b.body[:0], 0 }

// deflate compresses what a batch holds.
func deflate(c Codec, src []byte) ([]byte, error) {
	var out bytes.Buffer
	var err error
	switch c {
	case NoCodec:
		return src, nil
	case Gzip:
		w := gzip.NewWriter(&out)
		if _, err = w.Write(src); err == nil {
			err = w.Close()
		}
	case Snappy:
		return snappy.Encode(nil, src), nil
	case LZ4:
		w := lz4.NewWriter(&out)
		if err = w.Apply(lz4.BlockChecksumOption(false)); err == nil {
			_, err = w.Write(src)
		}
		if err == nil {
			err = w.Close()
		}
	case Zstd:
		var w *zstd.Encoder
		if w, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)); err == nil {
			return w.EncodeAll(src, nil), w.Close()
		}
	default:
		err = fmt.Errorf("codec %d is not known", c)
	}
	return out.Bytes(), err
}
