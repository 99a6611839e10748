package receiver

import (
	"bytes"
	"encoding/hex"
)

// segment1 is a file of format 1 with three blocks of two records, "record 0" up to "record 5".
const segment1 = "534d53454701000000000000000000004610f03f" +
	"1200000074d7f577000000000000000002000000087265636f72642030087265636f72642031" +
	"120000002aa4f82e020000000000000002000000087265636f72642032087265636f72642033" +
	"12000000c831efc5040000000000000002000000087265636f72642034087265636f72642035"

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// Segment1 is segment1 for tests from outside.
func Segment1() []byte { return unhex(segment1) }

// Bounds are the places in a file's bytes where its head ends and where each block ends, the mark of Close included.
func Bounds(b []byte) (out []int64) {
	l, _, at, err := readHead(b)
	for ok := err == nil; ok; {
		var x block
		out = append(out, at)
		x, _, ok, err = l.readBlock(bytes.NewReader(b), at, int64(len(b)), nil)
		at = x.end
	}
	if err != nil {
		panic(err)
	}
	return out
}
