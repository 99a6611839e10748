package milltool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// printJSON prints v as one line. Every result has a struct whose json tags are
// the documented fields.
func (c *call) printJSON(v any) error {
	e := json.NewEncoder(&c.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printf prints text for people.
func (c *call) printf(format string, args ...any) { fmt.Fprintf(&c.out, format, args...) }

// table prints rows in columns that are as wide as need be; the last one is as
// it is.
func (c *call) table(rows func(add func(cells ...string))) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	rows(func(cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) })
	w.Flush() // into memory: it cannot fail
	for line := range strings.Lines(b.String()) {
		c.out.WriteString(strings.TrimRight(line, " \n"))
		c.out.WriteByte('\n')
	}
}

// stamp writes an instant in unix nanoseconds; 0 is none.
func stamp(ns int64) string {
	if ns == 0 {
		return ""
	}
	return time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
}

// dash stands in tables for what is empty.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func number[N int | int64 | uint64](n N) string { return fmt.Sprint(n) }

// sizeText writes a number of bytes for people.
func sizeText(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	exp := min(int(math.Log2(float64(n))/10), 5)
	return strconv.FormatFloat(float64(n)/math.Pow(1024, float64(exp)), 'f', 1, 64) + " " + "KMGTP"[exp-1:exp] + "iB"
}

// word makes a name from a root fit for a table: quoted, if it holds anything
// but printable characters.
func word(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar || r == ' ' }) {
		return strconv.Quote(s)
	}
	return s
}

// clean keeps control characters of damaged or hostile roots from the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsGraphic(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// counted writes a number with its noun.
func counted[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n) + " " + many
}

// interval writes a duration in nanoseconds.
func interval(ns int64) string {
	if ns == 0 {
		return ""
	}
	return time.Duration(ns).String()
}
