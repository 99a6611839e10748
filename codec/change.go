package codec

import (
	"fmt"
	"strconv"
	"strings"
)

// Class says what a change of a type means for values that are stored.
type Class int

const (
	// Same: nothing has changed in what is stored.
	Same Class = iota
	// Compatible: the new type reads the old values, and nothing is lost.
	Compatible
	// Incompatible: the new type must not read the old values; a [Migration]
	// can.
	Incompatible
)

// String returns "same", "compatible" or "incompatible".
func (c Class) String() string {
	switch c {
	case Same:
		return "same"
	case Compatible:
		return "compatible"
	}
	return "incompatible"
}

// Change is one difference between two schemas, found by [Compare].
type Change struct {
	Class Class
	// Path leads to the part, such as "Orders[].Price"; map keys are [key]. It
	// is empty for the value itself. Fields go by their old names.
	Path string
	// Old and New describe the part before and after; empty where there is
	// none: a new field has no Old, a removed one no New.
	Old, New string
	// Text says what has happened and, where it is incompatible, what to do.
	Text string
}

// String names class, field, old, new and what to do, in one line.
func (c Change) String() string {
	where := "the value"
	if c.Path != "" {
		where = "field " + c.Path
	}
	return c.Class.String() + ": " + where + " " + c.Text
}

// ClassOf returns the worst class among changes: [Same] if there are none.
func ClassOf(changes []Change) Class {
	worst := Same
	for _, c := range changes {
		worst = max(worst, c.Class)
	}
	return worst
}

// SchemaError says that values are stored in a way that the program's type
// cannot read. Nothing has been read or written.
type SchemaError struct {
	// Old is what is stored, New what the program has.
	Old, New Schema
	// Changes are all differences, compatible ones too.
	Changes []Change
}

// Error names each incompatible difference with old and new.
func (e *SchemaError) Error() string {
	var lines []string
	for _, c := range e.Changes {
		if c.Class == Incompatible {
			lines = append(lines, strings.TrimPrefix(c.String(), Incompatible.String()+": "))
		}
	}
	return fmt.Sprintf("codec: stored as %s, the program has %s: %s", e.Old, e.New, strings.Join(lines, "; "))
}

func changedText(from, to string) string { return "was " + from + ", is now " + to }

func codecText(s Schema) string { return s.String() + " in codec " + strconv.Quote(s.codec) }
