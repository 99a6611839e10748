package statefile

import "hash/crc32"

// The formats, by number. A reader reads all of them; the writer writes the
// last one. A format is never changed once a release has written it: a change
// is a new number with its reason here, and files of it in testdata.
//
//	1  the first: columnar blocks, each with a checksum, and a footer.
const (
	formatColumns = 1

	// Newest is the format that is written, and the newest that is read.
	Newest = formatColumns
)

// Format 1. Numbers of fixed width are little endian; uvarint and varint are
// those of encoding/binary; a text is a uvarint length and its bytes; crc is
// CRC-32C, sum is XXH3 with 128 bits, big endian.
//
//	head     magic       8 bytes
//	         format      4 bytes
//	         length      4 bytes, of the fields
//	         fields      kind            1 byte: 1 delta, 2 snapshot
//	                     compression     1 byte: 0 none, 1 s2, 2 zstd
//	                     flags           1 byte: 1 entry times are deadlines
//	                     partition       uvarint
//	                     version         uvarint
//	                     batch time      varint, unix nanoseconds
//	                     operator        text
//	                     key codec       text
//	                     state codec     text
//	                     chain hash      16 bytes: of the version before (delta), of the version (snapshot)
//	         crc         4 bytes, of all before
//	frames   count       4 bytes, 1 to 4096
//	         raw length  4 bytes
//	         body length 4 bytes; equal to the raw length: the body is not compressed
//	         raw sum     16 bytes, of the block before compression
//	         crc         4 bytes, of the 28 bytes before and the body
//	         body: the block; or, compressed, a uvarint length, as many bytes
//	         that are the compressed block, and zeros up to minBody
//	footer   zero        4 bytes, where a frame has its count
//	         records     8 bytes, tombstones included
//	         tombstones  8 bytes
//	         raw bytes   8 bytes, the sum of the raw lengths
//	         size        8 bytes, of the whole file
//	         content sum 16 bytes, see Sum
//	         chain hash  16 bytes: of the version
//	         file sum    16 bytes, of all bytes before it
//	         crc         4 bytes, of the footer before it
//
// Magic, format, length and crc of the head are the same in every format, so
// that a newer file is told from a damaged one. The block, before compression:
//
//	keys     column of count numbers: key length << 1 | tombstone
//	         the keys, in the canonical encoding of package codec
//	times    of the entries that are no tombstones, see times.go
//	states   column of state lengths, of the entries that have a state
//	         the states, to the end of the block
//
// A column of n numbers is nothing for n = 0; else 0 and one uvarint if all are
// equal, or 1 and n uvarints.
const (
	magic      = "\x89SMST\r\n\x1a" // no text, and damaged by what changes line ends
	prefixLen  = 16
	maxFields  = 64 << 10
	frameLen   = 32
	footerLen  = 88
	footerRest = footerLen - frameLen // what follows the part that is as long as a frame's head
	fileSumAt  = footerLen - 4 - 16

	// blockRecords is the most records of a block; the writer also ends a
	// block at blockBytes of keys and states.
	blockRecords = 4096
	blockBytes   = 1 << 20

	// maxBlock is the most bytes of a block, which is only reached by a single
	// huge state.
	maxBlock = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// minBody is the least bytes that a body may have for a block of raw bytes: a
// block inflates to at most 64 times its body and 4 KiB. The writer pads what
// is more compressible, so that a reader need not believe more of a few bytes.
func minBody(raw int) int { return max(0, raw-4<<10+63) / 64 }
