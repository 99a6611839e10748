package checkpoint

import (
	"fmt"
	"strings"
)

// EncodeDocument gives the bytes of an *Owner, *Metadata, *Plan, *Commit or *Counts.
// Format is set to the newest if it is 0. It is for tools that write roots of
// their own; runs write by their [Session].
func EncodeDocument(doc any) ([]byte, error) {
	switch d := doc.(type) {
	case *Owner:
		return encodeAs(d, &d.Format)
	case *Metadata:
		return encodeAs(d, &d.Format)
	case *Plan:
		return encodeAs(d, &d.Format)
	case *Commit:
		return encodeAs(d, &d.Format)
	case *Counts:
		return encodeAs(d, &d.Format)
	}
	return nil, fmt.Errorf("checkpoint: a %T is no document", doc)
}

func encodeAs(d document, format *int) ([]byte, error) {
	if *format == 0 {
		_, _, *format = d.identity()
	}
	return encode(d)
}

// DecodeDocument reads the document that name, a name in a root, stands for:
// an *Owner, *Metadata, *Plan, *Commit or *Counts, checked as [Root] checks it. It is nil
// without an error for names of other files. Errors: *CorruptError,
// *FormatError.
func DecodeDocument(name string, b []byte) (any, error) {
	if epoch, term, ok := ParseCountsName(name); ok {
		d, err := decodeCounts(b, epoch, term)
		if err != nil {
			return nil, err
		}
		return d, nil
	}
	folder, last := name[:strings.LastIndexByte(name, '/')+1], name[strings.LastIndexByte(name, '/')+1:]
	number, ok := parseNumber(last)
	if !ok {
		return nil, nil
	}
	var d document
	switch folder {
	case ownerFolder:
		d = &Owner{}
	case metadataFolder:
		d = &Metadata{}
	case planFolder:
		d = &Plan{}
	case commitFolder:
		d = &Commit{}
	default:
		return nil, nil
	}
	if err := decode(b, name, number, d); err != nil {
		return nil, err
	}
	return d, nil
}
