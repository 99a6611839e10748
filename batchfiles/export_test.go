package batchfiles

import (
	"strings"

	"github.com/statemill/statemill/sink"
)

// Newer is a description as a newer version may write it.
func Newer(b string) string {
	body := strings.Replace(b, `"format":1`, `"format":2`, 1)
	body = body[:strings.LastIndex(body, sumMember)]
	return body + sumMember + sink.SumOf([]byte(body)).String() + sumTail
}

// Decode reads a description.
func Decode(b []byte, done bool) error { _, err := decode("x", b, done); return err }

// Unframe reads the rows of a part.
func Unframe(form Form, b []byte) (rows [][]byte, err error) {
	_, err = unframe(form, b, func(_ int64, row []byte) error { rows = append(rows, row); return nil })
	return rows, err
}
