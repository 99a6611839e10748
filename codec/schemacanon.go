package codec

import (
	"fmt"
	"slices"
	"strconv"
)

// label is all that a row says by itself, without its parts.
func (r *typeRow) label() string {
	b := strconv.AppendQuote(nil, string(r.kind))
	b = strconv.AppendInt(append(b, ' '), int64(r.length), 10)
	for _, f := range r.fields {
		b = strconv.AppendQuote(append(b, ' '), f.name)
		for _, a := range f.aliases {
			b = strconv.AppendQuote(append(b, '|'), a)
		}
	}
	return string(b)
}

// children are the parts of a row, in a fixed order.
func (r *typeRow) children() []int {
	var out []int
	if r.key >= 0 {
		out = append(out, r.key)
	}
	if r.elem >= 0 {
		out = append(out, r.elem)
	}
	for _, f := range r.fields {
		out = append(out, f.is)
	}
	return out
}

// canonical merges the rows that no walk can tell apart (as the states of an
// automaton are merged), and numbers the rest in the order in which a walk from
// row 0 meets them, leaving out what it does not meet. All references must be
// valid.
func canonical(rows []typeRow) []typeRow {
	class := make([]int, len(rows))
	for count := 0; ; {
		ids := map[string]int{}
		next := make([]int, len(rows))
		for i := range rows {
			text := rows[i].label()
			if count > 0 {
				parts := []int{class[i]}
				for _, c := range rows[i].children() {
					parts = append(parts, class[c])
				}
				text = fmt.Sprint(parts)
			}
			id, ok := ids[text]
			if !ok {
				id = len(ids)
				ids[text] = id
			}
			next[i] = id
		}
		class = next
		if len(ids) == count {
			break
		}
		count = len(ids)
	}
	return renumber(rows, class)
}

// renumber keeps one row of each class.
func renumber(rows []typeRow, class []int) []typeRow {
	if len(rows) == 0 {
		return nil
	}
	number := map[int]int{class[0]: 0}
	keep := []int{0}
	to := func(i int) int {
		if i < 0 {
			return -1
		}
		n, ok := number[class[i]]
		if !ok {
			n = len(keep)
			number[class[i]] = n
			keep = append(keep, i)
		}
		return n
	}
	var out []typeRow
	for i := 0; i < len(keep); i++ {
		r := rows[keep[i]]
		r.key, r.elem = to(r.key), to(r.elem)
		r.fields = slices.Clone(r.fields)
		for j := range r.fields {
			r.fields[j].is = to(r.fields[j].is)
		}
		out = append(out, r)
	}
	return out
}
