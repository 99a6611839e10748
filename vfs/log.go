package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
)

// Log is the list of calls that were made, one a line, in the order in which
// they ended, in a form for golden files: kind, path below the root, and after
// "=" the class of error if there was one. Writes that follow one another to
// one file are one line, so that the size of buffers does not show. Its methods
// may be called from any goroutine.
type Log struct {
	root  string
	kinds Kind

	mu    sync.Mutex
	lines []string
	count map[Kind]int
}

// NewLog returns a log of the calls of the given kinds, with paths told
// relative to root.
func NewLog(root string, kinds Kind) *Log {
	return &Log{root: filepath.ToSlash(filepath.Clean(root)), kinds: kinds, count: map[Kind]int{}}
}

// WithLog returns fsys with every call written to the log.
func WithLog(fsys FS, log *Log) FS { return hookFS{fsys, log} }

// WithStoreLog returns s with every call written to the log.
func WithStoreLog(s Store, log *Log) Store { return hookStore{s, log} }

// String gives all lines, each with its end.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 0 {
		return ""
	}
	return strings.Join(l.lines, "\n") + "\n"
}

// Count is the number of calls of these kinds, each write counted.
func (l *Log) Count(kinds Kind) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, c := range l.count {
		if k&kinds != 0 {
			n += c
		}
	}
	return n
}

// Reset forgets all lines and counts.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = nil
	clear(l.count)
}

func (l *Log) around(c Call, do func() error, _ func(int)) error {
	err := do()
	if c.Kind&l.kinds == 0 {
		return err
	}
	c.Path, c.To = l.rel(c.Path), l.rel(c.To)
	line := c.String() + class(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count[c.Kind]++
	if n := len(l.lines); c.Kind != KindWrite || n == 0 || l.lines[n-1] != line {
		l.lines = append(l.lines, line)
	}
	return err
}

func (l *Log) rel(name string) string {
	name = filepath.ToSlash(name)
	if name == l.root {
		return "."
	}
	if l.root == "/" {
		return strings.TrimPrefix(name, "/")
	}
	return strings.TrimPrefix(name, l.root+"/")
}

// class names an error without anything that differs between machines.
func class(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return ""
	}
	for _, c := range []error{fs.ErrExist, fs.ErrNotExist, fs.ErrPermission, fs.ErrClosed, fs.ErrInvalid, ErrLocked, ErrInjected, errors.ErrUnsupported} {
		if errors.Is(err, c) {
			return " = " + c.Error()
		}
	}
	return " = error"
}
