package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// Canon gives the one text of a JSON value: no spaces, object fields sorted,
// numbers as written. Two values are equal when their texts are.
func Canon(raw []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // int64 states beyond 2^53 must not be rounded
	var v any
	if err := d.Decode(&v); err != nil {
		return "", fmt.Errorf("oracle: value %q: %w", raw, err)
	}
	if d.More() {
		return "", fmt.Errorf("oracle: value %q: more than one JSON value", raw)
	}
	return canonText(v)
}

// CanonOf is Canon of a Go value's JSON form.
func CanonOf(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("oracle: encode %T: %w", v, err)
	}
	return Canon(b)
}

// canonText relies on encoding/json sorting the keys of a map[string]any.
// HTML escaping is off so that a text reads as it was recorded.
func canonText(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("oracle: encode %T: %w", v, err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// Multiset is a batch as sorted canonical texts.
type Multiset []string

// CanonRows gives the multiset of recorded rows.
func CanonRows(rows []Row) (Multiset, error) {
	m := make(Multiset, 0, len(rows))
	for _, r := range rows {
		s, err := Canon(r)
		if err != nil {
			return nil, err
		}
		m = append(m, s)
	}
	sort.Strings(m)
	return m, nil
}

// Diff says how got differs from want, as values missing and values too many;
// "" when the two are equal as multisets.
func Diff(want, got Multiset) string {
	w, g := append(Multiset(nil), want...), append(Multiset(nil), got...)
	sort.Strings(w)
	sort.Strings(g)
	var missing, extra []string
	i, j := 0, 0
	for i < len(w) || j < len(g) {
		switch {
		case j == len(g) || (i < len(w) && w[i] < g[j]):
			missing = append(missing, w[i])
			i++
		case i == len(w) || g[j] < w[i]:
			extra = append(extra, g[j])
			j++
		default:
			i++
			j++
		}
	}
	if len(missing)+len(extra) == 0 {
		return ""
	}
	return fmt.Sprintf("missing [%s], too many [%s]", strings.Join(missing, " "), strings.Join(extra, " "))
}
