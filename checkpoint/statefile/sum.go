package statefile

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/zeebo/xxh3"
)

// Sum is a checksum of 128 bits: of a file, of a file's content, or a chain
// hash. It finds accidents and tells lines of versions apart; it is no
// signature. Its text form is hexadecimal.
//
// The content sum of a file covers what its head says (but for the
// compression and the chain hash) and count, raw length and raw sum of every
// block. It is the delta checksum of the chain.
type Sum [16]byte

// Chain gives the chain hash of a version from that of the version before and
// the content sum of the version's delta. The chain begins with the zero Sum.
// It ties a version to all deltas before it: a file of an abandoned line has
// another one.
func Chain(prev, content Sum) Sum {
	var b [32]byte
	copy(b[:16], prev[:])
	copy(b[16:], content[:])
	return sumOf(b[:])
}

// IsZero reports whether the sum is the beginning of a chain.
func (s Sum) IsZero() bool { return s == Sum{} }

// String gives 32 hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// MarshalText gives the text form.
func (s Sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the text form.
func (s *Sum) UnmarshalText(text []byte) error {
	if len(text) != 2*len(s) {
		return fmt.Errorf("statefile: a sum has %d hexadecimal digits, %q has %d bytes", 2*len(s), text[:min(len(text), 64)], len(text))
	}
	if _, err := hex.Decode(s[:], text); err != nil {
		return fmt.Errorf("statefile: sum %q: %w", text, err)
	}
	return nil
}

func sumOf(b []byte) Sum { return xxh3.Hash128(b).Bytes() }

// contentSum adds up what Sum says of a content sum, without keeping blocks.
type contentSum struct{ h *xxh3.Hasher }

func (c *contentSum) begin(info *Info) {
	if c.h == nil {
		c.h = xxh3.New()
	}
	c.h.Reset()
	_, _ = c.h.Write(info.appendIdentity(nil))
}

// frame adds a frame by its head, whose body length and crc are left out.
func (c *contentSum) frame(head *[frameLen]byte) {
	var b [24]byte
	copy(b[:8], head[:8])
	copy(b[8:], head[12:28])
	_, _ = c.h.Write(b[:])
}

// end adds the number of records, so that a missing last block shows here too.
func (c *contentSum) end(records uint64) Sum {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], records)
	_, _ = c.h.Write(b[:])
	return c.h.Sum128().Bytes()
}
