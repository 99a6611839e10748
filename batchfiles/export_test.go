package batchfiles

import (
	"strings"

	"github.com/statemill/statemill/internal/framing"
	"github.com/statemill/statemill/internal/sealed"
)

// Newer is a description as a newer version may write it.
func Newer(b string) string {
	body := strings.Replace(b, `"format":1`, `"format":2`, 1)
	whole, _ := sealed.Seal([]byte(body[:len(body)-sealed.TailLen]))
	return string(whole)
}

// Decode reads a description.
func Decode(b []byte, done bool) error { _, err := decode("x", b, done); return err }

// Unframe reads the rows of a part.
func Unframe(form Form, b []byte) (rows [][]byte, err error) {
	_, err = framing.Each(form == Text, b, func(_ int64, row []byte) error { rows = append(rows, row); return nil })
	return rows, err
}
