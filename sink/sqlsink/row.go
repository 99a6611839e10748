package sqlsink

import (
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/sink"
)

// Exec is a door to a unit: for each row, statement runs with the arguments that args
// makes of it, from the row alone. They are what database/sql takes: nil, numbers,
// strings, bytes (nil bytes are NULL), booleans, times, pointers to and types of such, and
// driver.Valuers. Times keep their instant and offset, not the name of their zone.
//
// The statement is part of what an epoch's output is: a run that changes it cannot
// finish an epoch that an older run has begun to commit to several sinks.
func Exec[T any](u *Unit, statement string, args func(row T) []any) sink.Sink[T] {
	s := sink.Sink[T]{Target: statement}
	if u != nil { // a nil *Unit would hide in the interface
		s.Unit = u
	}
	if args != nil {
		s.Encode = func(dst []byte, row T) ([]byte, error) { return appendArgs(dst, args(row)) }
	}
	return s
}

// The kinds of arguments in a row: a byte before each.
const (
	kindNil = iota
	kindInt
	kindFloat
	kindFalse
	kindTrue
	kindBytes
	kindString
	kindTime
)

// appendArgs appends arguments in one form: equal ones give equal bytes.
func appendArgs(dst []byte, args []any) ([]byte, error) {
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return dst, fmt.Errorf("argument %d of type %T: %w", i+1, a, err)
		}
		switch v := v.(type) {
		case nil:
			dst = append(dst, kindNil)
		case int64:
			dst = binary.AppendVarint(append(dst, kindInt), v)
		case float64:
			dst = binary.BigEndian.AppendUint64(append(dst, kindFloat), math.Float64bits(v))
		case bool:
			if v {
				dst = append(dst, kindTrue)
			} else {
				dst = append(dst, kindFalse)
			}
		case []byte:
			if v == nil && !sabotage.On("sql-nil-bytes-are-empty") { // NULL, as drivers take it
				dst = append(dst, kindNil)
				continue
			}
			dst = binary.AppendUvarint(append(dst, kindBytes), uint64(len(v)))
			dst = append(dst, v...)
		case string:
			dst = binary.AppendUvarint(append(dst, kindString), uint64(len(v)))
			dst = append(dst, v...)
		case time.Time:
			_, offset := v.Zone()
			dst = binary.AppendVarint(append(dst, kindTime), v.Unix())
			dst = binary.AppendUvarint(dst, uint64(v.Nanosecond()))
			dst = binary.AppendVarint(dst, int64(offset))
		default: // driver.IsValue knows no other
			return dst, fmt.Errorf("argument %d of type %T: database/sql does not take it", i+1, a)
		}
	}
	return dst, nil
}

var errRow = errors.New("the row is no list of arguments: rows of this sink are made by Exec")

// argsOf reads what appendArgs wrote.
func argsOf(row []byte) (args []any, err error) {
	r := reader{b: row}
	for len(r.b) > 0 && !r.bad {
		kind := r.b[0]
		r.b = r.b[1:]
		switch kind {
		case kindNil:
			args = append(args, nil)
		case kindInt:
			args = append(args, r.varint())
		case kindFloat:
			args = append(args, math.Float64frombits(binary.BigEndian.Uint64(r.take(8))))
		case kindFalse, kindTrue:
			args = append(args, kind == kindTrue)
		case kindBytes:
			args = append(args, append([]byte{}, r.take(r.uvarint())...))
		case kindString:
			args = append(args, string(r.take(r.uvarint())))
		case kindTime:
			sec, nsec, offset := r.varint(), r.uvarint(), r.varint()
			if nsec >= 1e9 || offset < -86400 || offset > 86400 {
				return nil, errRow
			}
			t := time.Unix(sec, int64(nsec)).UTC()
			if offset != 0 {
				t = t.In(time.FixedZone("", int(offset)))
			}
			args = append(args, t)
		default:
			return nil, errRow
		}
	}
	if r.bad {
		return nil, errRow
	}
	return args, nil
}

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// take gives n bytes; of a row that is too short, zeros.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return make([]byte, 8)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}
