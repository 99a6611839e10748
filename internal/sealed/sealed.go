// Package sealed writes and reads small documents that carry a sum of themselves: a
// JSON object on one line whose last member is "sum", the xxh3 of 128 bits of all bytes
// before the comma that precedes it, in hexadecimal. Every changed, missing or added
// byte is found. It knows nothing of the other members: formats, and the form in which
// one meaning is written, are its callers'.
package sealed

import (
	"bytes"
	"encoding/hex"
	"errors"

	"github.com/zeebo/xxh3"
)

// Sum is the sum of a document.
type Sum = [16]byte

const (
	head = `,"sum":"`
	end  = "\"}\n"

	// TailLen is the length of what Seal adds.
	TailLen = len(head) + 2*len(Sum{}) + len(end)
)

// What Open finds.
var (
	// ErrShort: there are fewer bytes than a sum takes.
	ErrShort = errors.New("it has fewer bytes than a sum takes")
	// ErrCut: it does not end as a document does.
	ErrCut = errors.New("it is cut off, or bytes follow its end")
	// ErrSum: it ends as a document does, with another sum.
	ErrSum = errors.New("its sum is not that of its bytes")
)

// Seal appends the sum to a JSON object without its closing brace, which has at least
// one member, and gives the whole document and the sum.
func Seal(body []byte) ([]byte, Sum) {
	sum := Sum(xxh3.Hash128(body).Bytes())
	return append(body, tail(sum)...), sum
}

func tail(sum Sum) string { return head + hex.EncodeToString(sum[:]) + end }

// Open gives the JSON object of a document without its sum, as bytes of its own, and
// the sum of what is there. With ErrCut and ErrSum it gives them, too: only not
// believed.
func Open(b []byte) (object []byte, sum Sum, err error) {
	if len(b) < TailLen {
		return nil, sum, ErrShort
	}
	body, rest := b[:len(b)-TailLen], b[len(b)-TailLen:]
	sum = xxh3.Hash128(body).Bytes()
	switch {
	case string(rest) == tail(sum):
	case bytes.HasPrefix(rest, []byte(head)) && bytes.HasSuffix(rest, []byte(end)):
		err = ErrSum
	default:
		err = ErrCut
	}
	return append(bytes.Clone(body), '}'), sum, err
}
