package receiver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"

	"github.com/statemill/statemill/internal/sabotage"
)

// The format of a segment, number 2. All numbers are little endian.
//
//	head   "SMSEG" 2 0 0 | first offset u64 | crc32c of the 16 bytes u32 | salt u64 | crc32c of the 28 bytes u32
//	block  payload's length u32 | payload's crc32c u32 | where the block begins in the file u64 |
//	       first offset u64 | count u32 | crc32c of these 28 bytes and the salt u32 | payload
//	payload: count times { length uvarint, bytes }
//
// A block with count 0 and no payload is the mark that Close sets behind the last one.
//
// What a power loss may leave, and how damage is told from it: a file's head is synced
// before its first block is begun, each block before the next one is begun, and a file
// gets no more after a failure. So all but the last block of a file was synced, and
// only that one was perhaps never acknowledged: any of its bytes, the first or the last
// ones, may be missing, zeros or others. Hence
//
//   - a block that is not whole, with the head of a block anywhere behind it, or with
//     bytes behind its own end, is damaged: it had been synced;
//   - a block that is not whole with nothing behind it is taken for the rest of an
//     interrupted write, and what a file has from there on does not exist. (If a byte of
//     that one was changed later, nothing tells: unless the next file is there, which
//     says up to which offset all was synced, or the mark of Close.)
//
// A record may hold anything, a copy of this very file too. Therefore a block's head
// names its place, and its checksum takes in the file's salt, a random number: bytes
// within a payload are not taken for the head of a block.
const (
	version   = 2
	headSize  = 32
	blockHead = 32
	// maxBlock bounds what a reader believes of a length.
	maxBlock = 1 << 30
)

var (
	magic = [5]byte{'S', 'M', 'S', 'E', 'G'}
	table = crc32.MakeTable(crc32.Castagnoli)
)

// layout is what must be known of a file to read its blocks.
type layout struct {
	version byte
	salt    uint64 // 0 in format 1
}

var errNewer = errors.New("use a newer one")

func appendHead(dst []byte, first int64, salt uint64) []byte {
	at := len(dst)
	dst = append(dst, magic[:]...)
	dst = append(dst, version, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(first))
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], table))
	dst = binary.LittleEndian.AppendUint64(dst, salt)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], table))
}

// readHead reads the head that a file begins with; b may have more or fewer bytes. The
// first 20 bytes are alike in all formats.
func readHead(b []byte) (l layout, first, size int64, err error) {
	switch {
	case len(b) < headSize1:
		return l, 0, 0, fmt.Errorf("%d bytes are no head", len(b))
	case [5]byte(b) != magic:
		return l, 0, 0, errors.New("it does not begin like a segment")
	case binary.LittleEndian.Uint32(b[16:]) != crc32.Checksum(b[:16], table):
		return l, 0, 0, errors.New("the head's checksum is not that of its bytes")
	case b[5] == 0 || b[5] > version || b[6] != 0 || b[7] != 0:
		return l, 0, 0, fmt.Errorf("format %d: this version reads up to %d: %w", b[5], version, errNewer)
	}
	l.version = b[5]
	first = int64(binary.LittleEndian.Uint64(b[8:]))
	if l.version == 1 {
		return l, first, headSize1, nil
	}
	switch {
	case len(b) < headSize:
		return l, 0, 0, fmt.Errorf("%d bytes are no head", len(b))
	case binary.LittleEndian.Uint32(b[28:]) != crc32.Checksum(b[:28], table):
		return l, 0, 0, errors.New("the head's checksum is not that of its bytes")
	}
	l.salt = binary.LittleEndian.Uint64(b[20:])
	return l, first, headSize, nil
}

// beginBlock leaves room for a block's head.
func beginBlock(dst []byte) []byte { return append(dst, make([]byte, blockHead)...) }

func appendRecord(dst, record []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(record)))
	return append(dst, record...)
}

// sizeOfPayload is how long records are in a block.
func sizeOfPayload(records [][]byte) int64 {
	size := int64(0)
	for _, r := range records {
		size += int64(len(r)) + int64(bits.Len64(uint64(len(r))|1)+6)/7
	}
	return size
}

// endBlock fills in the head of the block that b is, which begins at a place of a file.
func endBlock(b []byte, salt uint64, at, first int64, count int) {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-blockHead))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[blockHead:], table))
	binary.LittleEndian.PutUint64(b[8:], uint64(at))
	binary.LittleEndian.PutUint64(b[16:], uint64(first))
	binary.LittleEndian.PutUint32(b[24:], uint32(count))
	binary.LittleEndian.PutUint32(b[28:], sumOfHead(b, salt))
}

func sumOfHead(head []byte, salt uint64) uint32 {
	return crc32.Update(crc32.Checksum(head[:28], table), table, binary.LittleEndian.AppendUint64(nil, salt))
}

// isHead says whether a block's head of format 2 is at the beginning of b, which is
// what stands at a place of the file.
func (l layout) isHead(b []byte, at int64) bool {
	return len(b) >= blockHead &&
		(binary.LittleEndian.Uint64(b[8:]) == uint64(at) || sabotage.On("receiver-heads-anywhere")) &&
		binary.LittleEndian.Uint32(b[28:]) == sumOfHead(b, l.salt)
}

// block is one block as it was read. Its payload is valid until the next read.
type block struct {
	first   int64
	count   int
	payload []byte
	end     int64 // in the file; 0 if not even the head is whole
}

// readBlock reads the block at off of a file of the given size. ok is false if
// there is no whole block there; an error is one of reading.
func (l layout) readBlock(r io.ReaderAt, off, size int64, buf []byte) (b block, _ []byte, ok bool, err error) {
	if l.version == 1 {
		return readBlock1(r, off, size, buf)
	}
	if size-off < blockHead {
		return b, buf, false, nil
	}
	var head [blockHead]byte
	if err := readFull(r, head[:], off); err != nil {
		return b, buf, false, err
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if !l.isHead(head[:], off) || n > maxBlock {
		return b, buf, false, nil
	}
	b = block{
		first: int64(binary.LittleEndian.Uint64(head[16:])), count: int(binary.LittleEndian.Uint32(head[24:])),
		end: off + blockHead + n,
	}
	if b.end > size {
		return b, buf, false, nil
	}
	buf = grown(buf, n)
	if err := readFull(r, buf, off+blockHead); err != nil {
		return b, buf, false, err
	}
	b.payload = buf
	return b, buf, crc32.Checksum(buf, table) == binary.LittleEndian.Uint32(head[4:]), nil
}

// readFull reads all of buf; what a file has lost meanwhile is not looked at.
func readFull(r io.ReaderAt, buf []byte, off int64) error {
	if _, err := r.ReadAt(buf, off); err != nil && err != io.EOF {
		return err
	}
	return nil
}

// grown is a buffer of n bytes, buf if that has so many.
func grown(buf []byte, n int64) []byte {
	if int64(cap(buf)) < n {
		return make([]byte, n)
	}
	return buf[:n]
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
