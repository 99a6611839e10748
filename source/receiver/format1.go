package receiver

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// The format of a segment, number 1, which is read and no longer written. It differs
// in this:
//
//	head   "SMSEG" 1 0 0 | first offset u64 | crc32c of the 16 bytes u32
//	block  payload's length u32 | crc32c of all that follows u32 | first offset u64 | count u32 | payload
//
// There is no mark of Close. A block proves that what stands before it was synced only
// if it is whole, and if its offset can be that of a block behind the one that is not.
const (
	headSize1  = 20
	blockHead1 = 20
)

// readBlock1 is readBlock for format 1.
func readBlock1(r io.ReaderAt, off, size int64, buf []byte) (b block, _ []byte, ok bool, err error) {
	if size-off < blockHead1 {
		return b, buf, false, nil
	}
	var head [blockHead1]byte
	if err := readFull(r, head[:], off); err != nil {
		return b, buf, false, err
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if n > maxBlock || n > size-off-blockHead1 {
		return b, buf, false, nil
	}
	buf = grown(buf, n)
	if err := readFull(r, buf, off+blockHead1); err != nil {
		return b, buf, false, err
	}
	sum := crc32.Update(crc32.Checksum(head[8:], table), table, buf)
	if sum != binary.LittleEndian.Uint32(head[4:]) {
		return b, buf, false, nil
	}
	b = block{
		first: int64(binary.LittleEndian.Uint64(head[8:])), count: int(binary.LittleEndian.Uint32(head[16:])),
		payload: buf, end: off + blockHead1 + n,
	}
	return b, buf, true, nil
}

// mayFollow1 says whether b, which stands at a place behind off, may begin a block of
// format 1 behind the one at off that begins with an offset: each record takes a byte
// or more. It keeps the search from reading payloads in vain.
func mayFollow1(b []byte, off, at, offset int64) bool {
	n, count := int64(binary.LittleEndian.Uint32(b)), int64(binary.LittleEndian.Uint32(b[16:]))
	first := int64(binary.LittleEndian.Uint64(b[8:]))
	return count > 0 && count <= n && first > offset && first-offset <= at-off
}
