package milltool

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// printJSON prints v as one line. Every result has a struct whose json tags are
// the documented fields.
func (c *call) printJSON(v any) error {
	e := json.NewEncoder(&c.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printEach prints each row as a line of JSON.
func printEach[T any](c *call, rows []T) error {
	for _, r := range rows {
		if err := c.printJSON(r); err != nil {
			return err
		}
	}
	return nil
}

// printf prints text for people.
func (c *call) printf(format string, args ...any) { fmt.Fprintf(&c.out, format, args...) }

// widest is the most that a cell makes its column wide: one long key does not
// pad all other lines.
const widest = 32

// table prints rows in columns; cells that are too long stand out.
func (c *call) table(rows func(add func(cells ...string))) {
	var lines [][]string
	var wide []int
	rows(func(cells ...string) {
		lines = append(lines, cells)
		for i, cell := range cells {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			if n := utf8.RuneCountInString(cell); n <= widest {
				wide[i] = max(wide[i], n)
			}
		}
	})
	for _, cells := range lines {
		for i, cell := range cells {
			c.out.WriteString(cell)
			if i < len(cells)-1 {
				pad := max(wide[i]-utf8.RuneCountInString(cell), 0) + 2
				c.out.WriteString(strings.Repeat(" ", pad))
			}
		}
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

// shown writes JSON for a terminal: characters that are not seen stand as their
// numbers, as JSON may have them.
func shown(j json.RawMessage) string {
	s := string(j)
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsGraphic(r) {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, "\\u%04x", u)
		}
	}
	return b.String()
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
