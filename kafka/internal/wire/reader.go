package wire

import "encoding/binary"

// reader takes an answer apart. After the first field that is cut, bad is set and
// all else is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) i8() int8 {
	if b := r.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (r *reader) i16() int16 {
	if b := r.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) i32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) i64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// text reads a string; null is "".
func (r *reader) text() string {
	n := int(r.i16())
	if n == -1 {
		return ""
	}
	return string(r.take(n))
}

// count reads the length of an array whose elements take at least size bytes;
// null is 0.
func (r *reader) count(size int) int { return r.checked(int(r.i32()), size) }

func (r *reader) checked(n, size int) int {
	switch {
	case n == -1:
		return 0
	case n < 0 || n > len(r.b)/size:
		r.bad, r.b = true, nil
		return 0
	}
	return n
}

// The compact forms of newer versions: lengths are unsigned varints, one more
// than the length, 0 for null.

func (r *reader) uvarint() int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > 1<<31 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

func (r *reader) compactText() string {
	n := r.uvarint() - 1
	if n == -1 {
		return ""
	}
	return string(r.take(n))
}

func (r *reader) compactCount(size int) int { return r.checked(r.uvarint()-1, size) }

// tags passes over tagged fields.
func (r *reader) tags() {
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		r.uvarint()
		r.take(r.uvarint())
	}
}
