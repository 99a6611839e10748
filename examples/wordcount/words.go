package main

import (
	"bufio"
	"errors"
	"io"
	"unicode"
	"unicode/utf8"
)

// A word is a longest run of letters, digits and underscores; case counts.
func inWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// asciiWord is inWord for the bytes below 0x80: text is mostly these.
var asciiWord = func() (t [utf8.RuneSelf]bool) {
	for r := range rune(utf8.RuneSelf) {
		t[r] = inWord(r)
	}
	return t
}()

// eachWord gives the words of a line as substrings of it. It is what the job
// uses; the state map copies a word when it first becomes a key, so no line is
// kept alive by its words.
func eachWord(line string, give func(string)) {
	start := -1
	for i := 0; i < len(line); {
		c, width := rune(line[i]), 1
		var in bool
		if c < utf8.RuneSelf {
			in = asciiWord[c]
		} else {
			c, width = utf8.DecodeRuneInString(line[i:])
			in = inWord(c) && !(c == utf8.RuneError && width == 1)
		}
		switch {
		case in && start < 0:
			start = i
		case !in && start >= 0:
			give(line[start:i])
			start = -1
		}
		i += width
	}
	if start >= 0 {
		give(line[start:])
	}
}

// plainCount is the independent count: it knows no lines and no batches, reads
// runes one by one and counts in one plain map. It shares inWord with the job,
// which is the definition of a word, and nothing else.
type plainCount struct {
	counts map[string]*int64
	words  int64
	word   []byte
}

func newPlainCount() *plainCount { return &plainCount{counts: map[string]*int64{}} }

// totals are the counts as plain numbers.
func (p *plainCount) totals() map[string]int64 {
	out := make(map[string]int64, len(p.counts))
	for word, n := range p.counts {
		out[word] = *n
	}
	return out
}

// read counts the words of r to its end, which ends a word too.
func (p *plainCount) read(r io.Reader) error {
	b := bufio.NewReaderSize(r, 1<<16)
	for {
		c, width, err := b.ReadRune()
		if errors.Is(err, io.EOF) {
			p.end()
			return nil
		}
		if err != nil {
			return err
		}
		p.rune(c, width)
	}
}

// line counts the words of a line.
func (p *plainCount) line(text []byte) {
	for len(text) > 0 {
		c, width := utf8.DecodeRune(text)
		p.rune(c, width)
		text = text[width:]
	}
	p.end()
}

func (p *plainCount) rune(c rune, width int) {
	if inWord(c) && !(c == unicode.ReplacementChar && width == 1) {
		p.word = utf8.AppendRune(p.word, c)
	} else {
		p.end()
	}
}

// end closes the word that is being read, if any.
func (p *plainCount) end() {
	if len(p.word) == 0 {
		return
	}
	if n := p.counts[string(p.word)]; n != nil {
		*n++
	} else {
		one := int64(1)
		p.counts[string(p.word)] = &one
	}
	p.words++
	p.word = p.word[:0]
}
