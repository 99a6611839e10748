package main

import (
	"fmt"
	"slices"
	"strings"
)

// mismatchError lists words whose totals are not what the independent count
// says.
type mismatchError struct {
	n     int      // how many words differ
	first []string // some of them, in order of the words
}

func (e *mismatchError) Error() string {
	return fmt.Sprintf("MISMATCH: %d keys differ from the independent count: %s", e.n, strings.Join(e.first, "; "))
}

// verify compares every total, in both directions.
func verify(got map[string]int64, want *plainCount) error {
	var wrong []string
	for word, n := range want.counts {
		if got[word] != *n {
			wrong = append(wrong, fmt.Sprintf("%q is %d, want %d", word, got[word], *n))
		}
	}
	for word, n := range got {
		if want.counts[word] == nil {
			wrong = append(wrong, fmt.Sprintf("%q is %d, but is not in the text", word, n))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return &mismatchError{n: len(wrong), first: wrong[:min(5, len(wrong))]}
}
