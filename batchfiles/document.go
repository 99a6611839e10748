package batchfiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/sealed"
	"github.com/statemill/statemill/sink"
)

// Format is the number of the format of batches that this version writes. Lower ones
// are read for ever.
const Format = 1

// Form says how the rows of a part are told apart.
type Form string

// The forms of parts.
const (
	// Text: each row is followed by "\n". A row that holds a "\n" is several lines.
	Text Form = "text"
	// Binary: each row has its length before it, as an unsigned varint of encoding/binary.
	Binary Form = "records"
)

// Part is one part of a batch.
type Part struct {
	// Rows is the number of rows, Size the length in bytes.
	Rows int64 `json:"rows"`
	Size int64 `json:"size"`
	// Sum is the sum of all bytes.
	Sum sink.Sum `json:"sum"`
}

// document is _PARTS, which has no Parts yet, and _SUCCESS, which has them. It is a JSON
// object on one line whose last member is the sum of all bytes before it.
type document struct {
	Format int  `json:"format"`
	Form   Form `json:"form"`
	// Schema says how the values of records are stored; null for text.
	Schema codec.Schema `json:"schema"`
	Of     int          `json:"of"` // the number of parts
	Parts  []Part       `json:"parts,omitempty"`
}

// encode gives the file.
func (d *document) encode() ([]byte, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("batchfiles: %w", err)
	}
	b, _ = sealed.Seal(b[:len(b)-1])
	return b, nil
}

// decode reads what encode wrote. Whatever else it is given is an error, and path is in
// it.
func decode(path string, b []byte, done bool) (*document, error) {
	damaged := func(format string, args ...any) (*document, error) {
		return nil, &DamagedError{Path: path, Reason: fmt.Sprintf(format, args...)}
	}
	whole, _, err := sealed.Open(b)
	switch {
	case errors.Is(err, sealed.ErrShort):
		return damaged("%d bytes are no description of a batch", len(b))
	case err != nil:
		return damaged("its sum is not that of its bytes")
	}
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(whole, &head); err != nil {
		return damaged("%v", err)
	}
	if head.Format > Format {
		return nil, fmt.Errorf("%w: %s has format %d, this version reads up to %d: use the version that wrote it", ErrFormat, path, head.Format, Format)
	}
	d := new(document)
	if err := json.Unmarshal(whole, d); err != nil {
		return damaged("%v", err)
	}
	// One meaning has one form, so what is read is what was written.
	if again, err := d.encode(); err != nil || !bytes.Equal(again, b) {
		return damaged("it is not in the form in which it is written")
	}
	if err := d.check(done); err != nil {
		return damaged("%v", err)
	}
	return d, nil
}

// check says what is wrong with a document by itself.
func (d *document) check(done bool) error {
	switch {
	case d.Format != Format:
		return fmt.Errorf("format %d", d.Format)
	case d.Form != Text && d.Form != Binary:
		return fmt.Errorf("form %q is not known", d.Form)
	case d.Schema.IsZero() != (d.Form == Text):
		return fmt.Errorf("form %q, and schema %v", d.Form, d.Schema)
	case d.Of < 1:
		return fmt.Errorf("%d parts", d.Of)
	case !done && len(d.Parts) > 0, done && len(d.Parts) != d.Of:
		return fmt.Errorf("%d parts are described, of %d", len(d.Parts), d.Of)
	}
	for i, p := range d.Parts {
		if p.Rows < 0 || p.Size < p.Rows {
			return fmt.Errorf("%s has %d rows in %d bytes", partName(i), p.Rows, p.Size)
		}
	}
	return nil
}

// differs says in what a batch that is there is another one than d; "" for nothing.
func (d *document) differs(there *document) string {
	switch {
	case there.Form != d.Form:
		return fmt.Sprintf("it holds %s, not %s", there.Form, d.Form)
	case there.Of != d.Of:
		return fmt.Sprintf("it has %d parts, not %d", there.Of, d.Of)
	case there.Schema.Fingerprint() != d.Schema.Fingerprint():
		return fmt.Sprintf("its records are %v, not %v", there.Schema, d.Schema)
	}
	return ""
}

// differs says in what a part that is there is another one; "" for nothing.
func (p Part) differs(there Part) string {
	switch {
	case there.Size != p.Size:
		return fmt.Sprintf("it has %d bytes, not %d", there.Size, p.Size)
	case there.Sum != p.Sum:
		return fmt.Sprintf("its %d bytes have the sum %v, not %v", there.Size, there.Sum, p.Sum)
	}
	return ""
}
