package codec

import "strconv"

// maxText is about the longest text of a schema: it goes into error messages.
const maxText = 400

// String describes the values in the manner of Go: {A int64; B []string}.
// Structs whose fields go by position stand in round brackets. Long and
// endless types are cut with an ellipsis.
func (s Schema) String() string {
	if s.IsZero() {
		return "nothing"
	}
	return s.text(0)
}

func (s Schema) text(i int) string {
	t := texter{s: s, under: map[int]bool{}}
	t.row(i)
	return string(t.out)
}

type texter struct {
	s     Schema
	under map[int]bool
	out   []byte
}

func (t *texter) add(s string) { t.out = append(t.out, s...) }

func (t *texter) row(i int) {
	r := &t.s.types[i]
	if len(t.out) > maxText || t.under[i] {
		t.add("…")
		return
	}
	t.under[i] = true
	defer delete(t.under, i)
	switch r.kind {
	case kindByteArray:
		t.add("[" + strconv.Itoa(r.length) + "]byte")
	case kindArray:
		t.add("[" + strconv.Itoa(r.length) + "]")
		t.row(r.elem)
	case kindSlice:
		t.add("[]")
		t.row(r.elem)
	case kindPointer:
		t.add("*")
		t.row(r.elem)
	case kindMap:
		t.add("map[")
		t.row(r.key)
		t.add("]")
		t.row(r.elem)
	case kindStruct:
		t.fields(r, "{", "}")
	case kindTuple:
		t.fields(r, "(", ")")
	case kindOwnMsgpack, kindOwnBinary, kindOwnText:
		t.add("own encoding (" + string(r.kind[len("own "):]) + ")")
	case kindUser:
		t.add("values of codec " + strconv.Quote(t.s.codec))
	default:
		t.add(string(r.kind))
	}
}

func (t *texter) fields(r *typeRow, open, end string) {
	t.add(open)
	for i, f := range r.fields {
		if i > 0 {
			t.add("; ")
		}
		if len(t.out) > maxText {
			t.add("…")
			break
		}
		t.add(f.name + " ")
		t.row(f.is)
	}
	t.add(end)
}
