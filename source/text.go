package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// Line is a line of text with its origin.
type Line struct {
	// Text is the line without its end (\n or \r\n).
	Text string
	// File is the path of the file.
	File string
	// Offset is the byte at which the line begins in the file.
	Offset int64
}

func textOnly(text, _ string, _ int64) string         { return text }
func withOrigin(text, file string, offset int64) Line { return Line{text, file, offset} }

const (
	defaultMaxBytes = 32 << 20
	defaultMaxLine  = 4 << 20
	readBlock       = 256 << 10
)

// span is a part of one file. A line belongs to the span in which it begins, so
// spans may be cut at any byte and each line is still read exactly once.
type span struct {
	fsys        vfs.FS
	path        string
	from, until int64
	size        int64 // bytes after it are not looked at
	maxLine     int
}

// begins returns where the first lines of the span begin, at most limit.
func (s span) begins(ctx context.Context, limit int64) ([]int64, error) {
	var out []int64
	if s.from >= s.until {
		return nil, nil
	}
	err := s.blocks(ctx, s.first(), func(at int64, block []byte) bool {
		if at == 0 && s.from == 0 && limit > 0 {
			out = append(out, 0)
		}
		for i := 0; int64(len(out)) < limit; {
			j := bytes.IndexByte(block[i:], '\n')
			if j < 0 {
				return at+int64(len(block)) < s.until
			}
			i += j + 1
			b := at + int64(i)
			if b >= s.until || b >= s.size {
				return false
			}
			out = append(out, b)
		}
		return false
	})
	return out, err
}

// firstBegin is where the first line of the span begins; -1 if none does.
func (s span) firstBegin(ctx context.Context) (int64, error) {
	if s.from == 0 && s.until > 0 {
		return 0, nil
	}
	one := s
	one.until = min(s.from+1, s.until) // most spans begin with a line
	for _, sp := range []span{one, s} {
		if b, err := sp.begins(ctx, 1); err != nil || len(b) > 0 {
			return append(b, -1)[0], err
		}
	}
	return -1, nil
}

// lastBegin is where the last line of the span begins; -1 if none does.
func (s span) lastBegin(ctx context.Context) (int64, error) {
	const part = 64 << 10 // it is found near the end
	for until := s.until; until > s.from; until -= part {
		sp := s
		sp.from, sp.until = max(s.from, until-part), until
		if b, err := sp.begins(ctx, part); err != nil || len(b) > 0 {
			return append([]int64{-1}, b...)[len(b)], err
		}
	}
	return -1, nil
}

// whole says where the lines end that begin in the span and take no more than most
// bytes, and how many they take. With alone the first line goes all the same.
func (s span) whole(ctx context.Context, most int64, alone bool) (end, taken int64, err error) {
	first, err := s.firstBegin(ctx)
	switch {
	case err != nil:
		return s.from, 0, err
	case first < 0: // the rest of a line that was planned before
		return s.until, 0, nil
	case s.until-first <= most:
		return s.until, s.until - first, nil
	}
	rest := s
	rest.from, rest.until = first+1, first+1+max(most, 0)
	last, err := rest.lastBegin(ctx)
	switch {
	case err != nil:
		return s.from, 0, err
	case last >= 0:
		return last, last - first, nil
	case alone:
		return s.line(ctx)
	}
	return first, 0, nil
}

// line says where the first line that begins in the span ends, and how long it is.
func (s span) line(ctx context.Context) (end, length int64, err error) {
	b, err := s.begins(ctx, 2)
	if b = append(b, s.until); err != nil || len(b) == 1 {
		return s.until, 0, err
	}
	return b[1], b[1] - b[0], nil
}

// first is where to look for the end of the line before the span's first.
func (s span) first() int64 { return max(s.from-1, 0) }

// lines calls emit for each line that begins in the span.
func (s span) lines(ctx context.Context, emit func(offset int64, line string) error) error {
	if s.from >= s.until {
		return nil
	}
	pos := s.first()
	skip := s.from > 0 && !sabotage.On("line-read-twice") // up to the first end of line: the span before has that line
	var carry []byte                                      // the begin of a line, from pos on
	var failed error
	err := s.blocks(ctx, pos, func(_ int64, block []byte) bool {
		if skip {
			j := bytes.IndexByte(block, '\n')
			if j < 0 {
				pos += int64(len(block))
				return pos+1 < s.until
			}
			pos += int64(j + 1)
			block, skip = block[j+1:], false
		}
		whole := bytes.LastIndexByte(block, '\n') + 1
		if pos+int64(len(carry)+len(block)) == s.size {
			whole = len(block)
		}
		if whole == 0 {
			if carry = append(carry, block...); len(carry) > s.maxLine {
				failed = s.tooLong(pos)
				return false
			}
			return true
		}
		whole += len(carry)
		data := append(carry, block...)
		// One string for all lines of the block: a line kept pins the block.
		text := string(data[:whole])
		for i := 0; i < len(text) && pos < s.until; {
			end := strings.IndexByte(text[i:], '\n')
			next := i + end + 1
			if end < 0 {
				end, next = len(text)-i, len(text)
			}
			if end > s.maxLine {
				failed = s.tooLong(pos)
				return false
			}
			if failed = emit(pos, strings.TrimSuffix(text[i:i+end], "\r")); failed != nil {
				return false
			}
			pos += int64(next - i)
			i = next
		}
		if pos >= s.until {
			return false
		}
		carry = append(data[:0], data[whole:]...)
		return true
	})
	if failed != nil {
		return failed
	}
	return err
}

func (s span) tooLong(at int64) error {
	return &LineTooLongError{Source: fmt.Sprintf("text file %q", s.path), Offset: at, Max: s.maxLine}
}

// blocks calls f with the file's bytes from at on, up to its size, until f
// returns false.
func (s span) blocks(ctx context.Context, at int64, f func(at int64, block []byte) bool) error {
	if at >= s.size {
		return nil
	}
	file, err := s.fsys.Open(s.path)
	if err != nil {
		return fmt.Errorf("text file %q: %w", s.path, err)
	}
	defer file.Close()
	// A small span needs little more than itself.
	buf := make([]byte, min(readBlock, s.until-at+4096, s.size-at))
	for at < s.size {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := file.ReadAt(buf[:min(int64(len(buf)), s.size-at)], at)
		if n == 0 {
			if errors.Is(err, io.EOF) {
				return &ChangedError{Source: fmt.Sprintf("text file %q", s.path),
					What: fmt.Sprintf("it had %d bytes when it was planned and now ends at or before byte %d: restore it", s.size, at)}
			}
			return fmt.Errorf("text file %q at byte %d: %w", s.path, at, err)
		}
		if !f(at, buf[:n]) {
			return nil
		}
		at += int64(n)
		if len(buf) < readBlock { // a line that is longer than its span
			buf = make([]byte, min(2*len(buf), readBlock))
		}
	}
	return nil
}

// orDefault is an option's value, or its default if it was left at 0.
func orDefault[N ~int | ~int64](v, def N) N {
	if v == 0 {
		return def
	}
	return v
}
