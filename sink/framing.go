package sink

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Framings are the Target of sinks that write to Files.
const (
	framingLines   = "lines"
	framingRecords = "records"
)

// Lines is a sink of lines of text in files: each row is what encode appends,
// with "\n" after it. A row that contains "\n" is an error. See [Sink].Encode
// for what encode may do.
func Lines[T any](f *Files, encode func(dst []byte, row T) ([]byte, error)) Sink[T] {
	return Sink[T]{Unit: f, Target: framingLines, Encode: encode}
}

// Records is a sink of records of any bytes in files: each row is what encode
// appends, with its length before it as an unsigned varint of encoding/binary.
func Records[T any](f *Files, encode func(dst []byte, row T) ([]byte, error)) Sink[T] {
	return Sink[T]{Unit: f, Target: framingRecords, Encode: encode}
}

// Text is an encode for [Lines]: fmt.Append of the row, which sorts maps. Rows
// that hold pointers print addresses and need an encode of their own.
func Text[T any](dst []byte, row T) ([]byte, error) { return fmt.Append(dst, row), nil }

const errNewline = permanentError("the row contains a newline: use sink.Records")

// frame writes rows to w, which should be buffered, and counts them.
func frame(framing string, rows Rows, w io.Writer) (n int64, err error) {
	var head [binary.MaxVarintLen64]byte
	err = rows(func(row []byte) (err error) {
		n++
		switch framing {
		case framingLines:
			if bytes.IndexByte(row, '\n') >= 0 {
				return fmt.Errorf("row %d: %w", n-1, errNewline)
			}
			if _, err = w.Write(row); err == nil {
				_, err = w.Write([]byte{'\n'})
			}
		default:
			if _, err = w.Write(head[:binary.PutUvarint(head[:], uint64(len(row)))]); err == nil {
				_, err = w.Write(row)
			}
		}
		return err
	})
	return n, err
}
