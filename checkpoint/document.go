package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/internal/sealed"
)

// The newest formats, by document. A format is never changed once a release has
// written it: a change is a new number, with its reason here, and files of it in
// testdata. Readers read all of them.
//
//	1  the first.
const (
	ownerFormat    = 1
	metadataFormat = 1
	planFormat     = 1
	commitFormat   = 1
	countsFormat   = 1
)

// document is what the five kinds have in common.
type document interface {
	// identity gives the format, the number that stands inside, and the newest
	// format that this program reads.
	identity() (format int, number uint64, newest int)
	// check refuses what no program writes.
	check() error
}

// encode gives the bytes of a document. Equal documents have equal bytes.
func encode(d document) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return nil, fmt.Errorf("checkpoint: encode a %T: %w", d, err)
	}
	out, _ := sealed.Seal(bytes.TrimSuffix(b.Bytes(), []byte("}\n")))
	return out, nil
}

// decode reads what encode gave into d. path and number are the file's name and
// the number in it. Errors: *CorruptError, *FormatError.
func decode(b []byte, path string, number uint64, d document) error {
	corrupt := func(reason string, cause error) error {
		return &CorruptError{Path: path, Number: number, Reason: reason, Err: cause}
	}
	object, _, err := sealed.Open(b)
	switch {
	case errors.Is(err, sealed.ErrShort):
		return corrupt(fmt.Sprintf("it has %d bytes, which is less than a checksum takes", len(b)), nil)
	case err == nil || sabotage.On("sum-not-checked"):
	case errors.Is(err, sealed.ErrCut):
		return corrupt("it is cut off, or bytes follow its end", nil)
	default:
		return corrupt("its checksum differs", nil)
	}
	// The format first: a newer one may have other members.
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(object, &head); err != nil {
		return corrupt("it is no JSON object", err)
	}
	_, _, newest := d.identity()
	if head.Format > newest {
		return &FormatError{Path: path, Number: number, Format: head.Format, Newest: newest}
	}
	j := json.NewDecoder(bytes.NewReader(object))
	j.DisallowUnknownFields()
	if err := j.Decode(d); err != nil {
		return corrupt("its members cannot be read", err)
	}
	format, inside, _ := d.identity()
	if format < 1 {
		return corrupt(fmt.Sprintf("there is no format %d", format), nil)
	}
	if inside != number {
		return corrupt(fmt.Sprintf("it says that its number is %d: it was copied or renamed", inside), nil)
	}
	if err := d.check(); err != nil {
		return corrupt("it says what no program writes", err)
	}
	return nil
}

func (o *Owner) identity() (int, uint64, int)    { return o.Format, o.Term, ownerFormat }
func (m *Metadata) identity() (int, uint64, int) { return m.Format, m.Seq, metadataFormat }
func (p *Plan) identity() (int, uint64, int)     { return p.Format, p.Epoch, planFormat }
func (c *Commit) identity() (int, uint64, int)   { return c.Format, c.Epoch, commitFormat }
