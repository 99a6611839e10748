package receiver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The format of a segment, number 1. All numbers are little endian.
//
//	head   "SMSEG" 1 0 0 | first offset u64 | crc32c of the 16 bytes u32
//	block  length u32 | crc32c of all that follows u32 | first offset u64 | count u32 | payload
//	payload: count times { length uvarint, bytes }
//
// length is that of the payload. A block is whole or torn; a torn one and all
// that stands after it were never acknowledged.
const (
	headSize  = 20
	blockHead = 20
	// maxBlock bounds what a reader believes of a length.
	maxBlock = 1 << 30
)

var (
	magic = [8]byte{'S', 'M', 'S', 'E', 'G', 1, 0, 0}
	table = crc32.MakeTable(crc32.Castagnoli)
)

var errNewer = errors.New("use a newer one")

func appendHead(dst []byte, first int64) []byte {
	at := len(dst)
	dst = append(dst, magic[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(first))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], table))
}

func readHead(b []byte) (first int64, err error) {
	switch {
	case len(b) < headSize:
		return 0, fmt.Errorf("%d bytes are no head", len(b))
	case [5]byte(b) != [5]byte(magic[:5]):
		return 0, fmt.Errorf("it does not begin like a segment")
	case binary.LittleEndian.Uint32(b[16:]) != crc32.Checksum(b[:16], table):
		return 0, fmt.Errorf("the head's checksum is not that of its bytes")
	case [8]byte(b) != magic:
		return 0, fmt.Errorf("format %d: this version reads up to %d: %w", b[5], magic[5], errNewer)
	}
	return int64(binary.LittleEndian.Uint64(b[8:])), nil
}

// beginBlock leaves room for a block's head.
func beginBlock(dst []byte) []byte { return append(dst, make([]byte, blockHead)...) }

func appendRecord(dst, record []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(record)))
	return append(dst, record...)
}

// endBlock fills in the head of the block that b is.
func endBlock(b []byte, first int64, count int) {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-blockHead))
	binary.LittleEndian.PutUint64(b[8:], uint64(first))
	binary.LittleEndian.PutUint32(b[16:], uint32(count))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], table))
}

// block is one block as it was read. Its payload is valid until the next read.
type block struct {
	first   int64
	count   int
	payload []byte
	size    int64 // in the file
}

// readBlock reads the block at off of a file of the given size. ok is false if
// there is no whole block there; an error is one of reading.
func readBlock(r io.ReaderAt, off, size int64, buf []byte) (b block, _ []byte, ok bool, err error) {
	if size-off < blockHead {
		return b, buf, false, nil
	}
	var head [blockHead]byte
	if _, err := r.ReadAt(head[:], off); err != nil && err != io.EOF {
		return b, buf, false, err
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if n > maxBlock || n > size-off-blockHead {
		return b, buf, false, nil
	}
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := r.ReadAt(buf, off+blockHead); err != nil && err != io.EOF {
		return b, buf, false, err
	}
	sum := crc32.Update(crc32.Checksum(head[8:], table), table, buf)
	if sum != binary.LittleEndian.Uint32(head[4:]) {
		return b, buf, false, nil
	}
	b = block{
		first: int64(binary.LittleEndian.Uint64(head[8:])), count: int(binary.LittleEndian.Uint32(head[16:])),
		payload: buf, size: blockHead + n,
	}
	return b, buf, true, nil
}

// records calls f for each record of a block, in order.
func (b *block) records(f func(offset int64, record []byte) error) error {
	p := b.payload
	for i := range b.count {
		n, k := binary.Uvarint(p)
		if k <= 0 || n > uint64(len(p)-k) {
			return fmt.Errorf("the block of offset %d ends in record %d of %d", b.first, i, b.count)
		}
		if err := f(b.first+int64(i), p[k:k+int(n)]); err != nil {
			return err
		}
		p = p[k+int(n):]
	}
	if len(p) > 0 {
		return fmt.Errorf("the block of offset %d has %d bytes after its last record", b.first, len(p))
	}
	return nil
}
