package sink

import (
	"encoding/hex"
	"fmt"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/zeebo/xxh3"
)

// Sum is a checksum of 128 bits (xxh3). It finds accidents and tells outputs
// apart; it is no signature. Its text form is hexadecimal.
type Sum [16]byte

// SumOf gives the sum of bytes.
func SumOf(b []byte) Sum { return xxh3.Hash128(b).Bytes() }

// String gives 32 hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// MarshalText gives the text form.
func (s Sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the text form, in small letters only.
func (s *Sum) UnmarshalText(text []byte) error {
	var out Sum
	if len(text) != 2*len(out) {
		return fmt.Errorf("sink: a sum has %d hexadecimal digits, %q has %d bytes", 2*len(out), text[:min(len(text), 64)], len(text))
	}
	if _, err := hex.Decode(out[:], text); err != nil || out.String() != string(text) {
		return fmt.Errorf("sink: sum %q: want hexadecimal digits in small letters", text)
	}
	*s = out
	return nil
}

// Digest ties an epoch's output to its state: chains are the chain hashes of
// all operators and partitions after the epoch, in the order of operator numbers
// and partitions; output is from Writer.Prepare.
func Digest[S ~[16]byte](chains []S, output Sum) Sum {
	h := xxh3.New()
	for _, c := range chains {
		b := [16]byte(c)
		_, _ = h.Write(b[:])
	}
	if !sabotage.On("sink-digest-without-output") { // CE9
		_, _ = h.Write(output[:])
	}
	return h.Sum128().Bytes()
}
