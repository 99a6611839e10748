// Package framing tells the rows of a file apart: by a "\n" after each, or by the
// length before each, an unsigned varint of encoding/binary.
package framing

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ErrFraming says that the last row is cut off, or that lengths are damaged.
var ErrFraming = errors.New("its rows do not end where the file ends")

// Each calls yield for each row of b, with its number from 0 on, and gives the number
// of rows that it was called for without an error. A row is a part of b, without room
// behind it. It ends at ErrFraming or at yield's error.
func Each(lines bool, b []byte, yield func(n int64, row []byte) error) (n int64, err error) {
	for ; len(b) > 0; n++ {
		var row []byte
		if lines {
			var ok bool
			if row, b, ok = bytes.Cut(b, []byte{'\n'}); !ok {
				return n, ErrFraming
			}
		} else {
			size, k := binary.Uvarint(b)
			if k <= 0 || size > uint64(len(b)-k) {
				return n, ErrFraming
			}
			row, b = b[k:k+int(size)], b[k+int(size):]
		}
		if err := yield(n, row[:len(row):len(row)]); err != nil {
			return n, err
		}
	}
	return n, nil
}
