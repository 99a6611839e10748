package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func wordsOf(line string) (words []string) {
	eachWord(line, func(w string) { words = append(words, w) })
	return words
}

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                       nil,
		" \t":                    nil,
		"a":                      {"a"},
		"func (x *T) do_it(9)":   {"func", "x", "T", "do_it", "9"},
		"größe—Ωmega\u00a0x":     {"größe", "Ωmega", "x"},
		"bad\xffbytes\xc3 end":   {"bad", "bytes", "end"},
		"tail ":                  {"tail"},
		"the replacement \ufffd": {"the", "replacement"},
	} {
		assert.Equal(t, want, wordsOf(line), "%q", line)
	}
}

// Both ways of counting agree on any bytes, however they are cut into lines.
func TestBothCountsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alphabet := rapid.SampledFrom([]string{"a", "B", "_", "7", " ", "\n", "\r\n", "é", "\xff", "\xc3", "\ufffd", "漢", "."})
		text := strings.Join(rapid.SliceOf(alphabet).Draw(t, "text"), "")
		counts := map[string]int64{}
		for line := range strings.SplitSeq(text, "\n") {
			eachWord(line, func(w string) { counts[w]++ })
		}
		plain := newPlainCount()
		if err := plain.read(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if err := verify(counts, plain); err != nil {
			t.Fatal(err)
		}
		byLine := newPlainCount()
		for line := range strings.SplitSeq(text, "\n") {
			byLine.line([]byte(line))
		}
		if err := verify(counts, byLine); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAFileEndEndsAWord(t *testing.T) {
	p := newPlainCount()
	require.NoError(t, p.read(strings.NewReader("one tw")))
	require.NoError(t, p.read(strings.NewReader("o")))
	require.NoError(t, verify(map[string]int64{"one": 1, "tw": 1, "o": 1}, p))
	assert.EqualValues(t, 3, p.words)
}

func TestVerifyFindsEveryKindOfMismatch(t *testing.T) {
	p := newPlainCount()
	require.NoError(t, p.read(bytes.NewBufferString("a a b")))
	require.NoError(t, verify(map[string]int64{"a": 2, "b": 1}, p))
	for name, got := range map[string]map[string]int64{
		"wrong total": {"a": 1, "b": 1},
		"missing key": {"a": 2},
		"extra key":   {"a": 2, "b": 1, "c": 1},
	} {
		var wrong *mismatchError
		require.ErrorAs(t, verify(got, p), &wrong, name)
		assert.Equal(t, 1, wrong.n, name)
	}
	many := map[string]int64{}
	for _, w := range []string{"c", "d", "e", "f", "g", "h"} {
		many[w] = 1
	}
	assert.ErrorContains(t, verify(many, p), "8 keys differ")
}

func TestPercentile(t *testing.T) {
	ms := func(n ...int) (d []time.Duration) {
		for _, i := range n {
			d = append(d, time.Duration(i)*time.Millisecond)
		}
		return d
	}
	assert.Zero(t, percentile(nil, 50))
	assert.Equal(t, 7*time.Millisecond, percentile(ms(7), 99))
	assert.Equal(t, 2*time.Millisecond, percentile(ms(3, 1, 2, 4), 50))
	assert.Equal(t, 4*time.Millisecond, percentile(ms(3, 1, 2, 4), 99))
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i
	}
	assert.Equal(t, 99*time.Millisecond, percentile(ms(hundred...), 99))
	assert.Equal(t, 100*time.Millisecond, percentile(ms(hundred...), 100))
}

// The list keeps the same words as sorting all final totals would.
func TestTopWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "n")
		top := topWords{n: n}
		totals := map[string]int64{}
		for _, w := range rapid.SliceOf(rapid.SampledFrom(strings.Split("a b c d e f g h", " "))).Draw(t, "words") {
			totals[w]++
			top.add(w, totals[w])
		}
		all := topWords{n: len(totals)}
		for w, total := range totals {
			all.add(w, total)
		}
		want := all.sorted()
		got := top.sorted()
		if len(got) != min(n, len(want)) {
			t.Fatalf("%d words, want %d", len(got), min(n, len(want)))
		}
		for i := range got {
			// Among equal totals any word may be the last one kept.
			if got[i].total != want[i].total || got[i].total != totals[got[i].word] {
				t.Fatalf("place %d: %v, want a total of %d", i, got[i], want[i].total)
			}
		}
	})
}
