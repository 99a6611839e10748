package milltest

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"unsafe"
)

// pinLimit bounds the search for states that pin their input: so many records of
// an input, so many states of an operator at the calls of State and StateTimes,
// and so many again at the end of the test.
const pinLimit = 100_000

// pins finds states whose text lies in the memory of an input record: in
// production that keeps the whole fetched buffer alive. The test's goroutine owns
// it.
type pins struct {
	inputs   []interface{ newPieces() []piece }
	sorted   []piece // by begin; none lies within another, so ends rise too
	looked   map[string]int
	warned   map[string]bool
	warnings []string
}

// piece is the memory of one text of an input record. It is an address and not a
// pointer: the script holds the record, and heap objects do not move.
type piece struct {
	begin, end uintptr
	// own: the kit made this memory for this record. Else it may be a constant of
	// the program, which a state may hold on its own account as a whole.
	own    bool
	input  string
	part   int
	offset int64
}

// Warnings lists what the kit has warned of so far, once an operator: states that
// keep a part of an input record, and with it the whole buffer that the record was
// fetched in.
func (k *Kit) Warnings() []string { return slices.Clone(k.pins.warnings) }

// update takes the pieces of the records given since the last call.
func (p *pins) update() {
	var fresh []piece
	for _, in := range p.inputs {
		fresh = append(fresh, in.newPieces()...)
	}
	if len(fresh) == 0 {
		return
	}
	slices.SortFunc(fresh, comparePieces)
	old, merged := p.sorted, make([]piece, 0, len(p.sorted)+len(fresh))
	last := uintptr(0)
	for len(old) > 0 || len(fresh) > 0 {
		from := &old
		if len(old) == 0 || len(fresh) > 0 && comparePieces(fresh[0], old[0]) < 0 {
			from = &fresh
		}
		next := (*from)[0]
		*from = (*from)[1:]
		if next.end > last { // else it lies within one before it
			merged, last = append(merged, next), next.end
		}
	}
	p.sorted = merged
}

// comparePieces puts the larger of two with one begin first.
func comparePieces(a, b piece) int {
	switch {
	case a.begin < b.begin || a.begin == b.begin && a.end > b.end:
		return -1
	case a.begin == b.begin && a.end == b.end:
		return 0
	}
	return 1
}

// find gives the piece that a text lies in.
func (p *pins) find(at uintptr, n int) (piece, bool) {
	i := sort.Search(len(p.sorted), func(i int) bool { return p.sorted[i].begin > at }) - 1
	if i < 0 || at >= p.sorted[i].end {
		return piece{}, false
	}
	in := p.sorted[i]
	return in, in.own || uintptr(n) < in.end-in.begin
}

// lookAtStates warns of the first state of rows, a []harness.StateRow, that pins
// its input. It looks at no more than limit states and gives their number.
func (k *Kit) lookAtStates(op string, rows reflect.Value, limit int) (looked int) {
	k.t.Helper()
	p := &k.pins
	state, _ := rows.Type().Elem().FieldByName("State")
	w := textWalk{}
	if p.warned[op] || limit <= 0 || !w.hasText(state.Type) || k.h.Engine().Log(op) {
		return 0
	}
	p.update()
	if len(p.sorted) == 0 {
		return 0
	}
	var in piece
	var size int
	var remedy string
	w.visit = func(v reflect.Value, at unsafe.Pointer, n int, _ bool) bool {
		found, ok := p.find(uintptr(at), n)
		if ok {
			in, size, remedy = found, n, "bytes.Clone"
			if v.Kind() == reflect.String {
				remedy = "strings.Clone"
			}
		}
		return ok
	}
	for i := range min(rows.Len(), limit) {
		w.left = walkLimit
		path, found := w.walk(rows.Index(i).FieldByName("State"), 0, false)
		if !found {
			continue
		}
		text := fmt.Sprintf("milltest: operator %q: the state%s of key %s keeps %d of the %d bytes of a record of input %q (partition %d, offset %d), and so the whole buffer that the record was fetched in: copy what you keep with %s",
			op, path, shown(rows.Index(i).FieldByName("Key")), size, in.end-in.begin, in.input, in.part, in.offset, remedy)
		p.warned[op] = true
		p.warnings = append(p.warnings, text)
		k.t.Logf("%s", text)
		return i + 1
	}
	return min(rows.Len(), limit)
}

// lookAtAllStates is for the end of the test.
func (k *Kit) lookAtAllStates() {
	k.t.Helper()
	engine := k.h.Engine()
	if engine == nil {
		return
	}
	for _, op := range engine.Operators() {
		// What cannot be read was, or will be, an error elsewhere.
		if rows, err := engine.Sample(op, pinLimit); err == nil {
			k.lookAtStates(op, reflect.ValueOf(rows), pinLimit)
		}
	}
}

// shown is a value in a message, not too long.
func shown(v reflect.Value) string {
	text := fmt.Sprintf("%v", v)
	if v.Kind() == reflect.String {
		text = fmt.Sprintf("%q", v)
	}
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}
