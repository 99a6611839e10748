package statefile

import (
	"encoding/binary"
	"errors"
)

const (
	columnSame = 0
	columnEach = 1
)

// appendColumn appends a column of numbers, see format.go.
func appendColumn(b []byte, vals []uint64) []byte {
	if len(vals) == 0 {
		return b
	}
	same := true
	for _, v := range vals {
		if v != vals[0] {
			same = false
			break
		}
	}
	if same {
		return binary.AppendUvarint(append(b, columnSame), vals[0])
	}
	b = append(b, columnEach)
	for _, v := range vals {
		if v < 0x80 {
			b = append(b, byte(v))
			continue
		}
		b = binary.AppendUvarint(b, v)
	}
	return b
}

var (
	errColumn     = errors.New("a column of numbers is cut off")
	errColumnMode = errors.New("a column of numbers has an unknown form")
)

// readColumn fills vals from the head of b and gives the rest of b.
func readColumn(b []byte, vals []uint64) ([]byte, error) {
	if len(vals) == 0 {
		return b, nil
	}
	if len(b) == 0 {
		return nil, errColumn
	}
	mode := b[0]
	b = b[1:]
	switch mode {
	case columnSame:
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errColumn
		}
		for i := range vals {
			vals[i] = v
		}
		return b[n:], nil
	case columnEach:
		at := 0
		for i := range vals {
			if at < len(b) && b[at] < 0x80 {
				vals[i] = uint64(b[at])
				at++
				continue
			}
			v, n := binary.Uvarint(b[at:])
			if n <= 0 {
				return nil, errColumn
			}
			vals[i] = v
			at += n
		}
		return b[at:], nil
	}
	return nil, errColumnMode
}
