package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// counted is a word and its total so far.
type counted struct {
	word  string
	total int64
}

// topWords keeps the n words with the greatest totals of those that are added.
// A word may come many times; its totals never fall.
type topWords struct {
	n     int
	best  []counted // unsorted, at most n
	floor int64     // the least total in best
}

// add is cheap for the mass of words that are not among the best: as totals
// never fall, one below the least of a full list cannot be of a word in it.
func (t *topWords) add(word string, total int64) {
	if len(t.best) == t.n && total < t.floor {
		return
	}
	t.place(word, total)
	t.floor = total
	for _, c := range t.best {
		t.floor = min(t.floor, c.total)
	}
}

func (t *topWords) place(word string, total int64) {
	least := -1
	for i := range t.best {
		if t.best[i].word == word {
			t.best[i].total = total
			return
		}
		if least < 0 || t.best[i].total < t.best[least].total {
			least = i
		}
	}
	switch {
	case len(t.best) < t.n:
		t.best = append(t.best, counted{strings.Clone(word), total})
	case least >= 0 && total > t.best[least].total:
		// A word that is pushed out comes back with its next, greater total.
		t.best[least] = counted{strings.Clone(word), total}
	}
}

// sorted gives the best, greatest first, equal ones by word.
func (t *topWords) sorted() []counted {
	s := slices.Clone(t.best)
	slices.SortFunc(s, func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.word, b.word))
	})
	return s
}

func (t *topWords) String() string {
	var parts []string
	for _, c := range t.sorted() {
		parts = append(parts, fmt.Sprintf("%s %d", c.word, c.total))
	}
	return strings.Join(parts, ", ")
}
