package source

import (
	"context"
	"io"

	"github.com/statemill/statemill/vfs"
)

type stub[T any] struct{}

func (stub[T]) Open(context.Context, *Plan) error                                { return nil }
func (stub[T]) Plan(context.Context, Limits) (Plan, error)                       { return Plan{}, nil }
func (stub[T]) Read(context.Context, Range, func(offset int64, v T) error) error { return nil }
func (stub[T]) Committed(context.Context, Plan) error                            { return nil }
func (stub[T]) Close() error                                                     { return nil }
func (stub[T]) Done() bool                                                       { return false }
func (stub[T]) Locate(string, int64) string                                      { return "" }

// Line is a line of text with its origin.
type Line struct {
	Text, File string
	Offset     int64
}

// Queue is a source of scripted batches: each plan takes one.
type Queue[T any] struct{ stub[T] }

// NewQueue returns a queue of n partitions. A nil batch is an empty one.
func NewQueue[T any](n int, batches ...[]T) *Queue[T] { return &Queue[T]{} }

// Push appends batches.
func (q *Queue[T]) Push(batches ...[]T) {}

// Finish says that no more batches will come.
func (q *Queue[T]) Finish() {}

// Files reads a fixed list of text files, line by line.
type Files[T any] struct {
	stub[T]
	Partitions       int
	MaxBytesPerBatch int64
	MaxLine          int
}

// TextFiles reads the lines of files.
func TextFiles(fsys vfs.FS, paths ...string) *Files[string] { return &Files[string]{} }

// FileLines is TextFiles with the origin of each line.
func FileLines(fsys vfs.FS, paths ...string) *Files[Line] { return &Files[Line]{} }

// Directory reads files that appear in a directory, each once.
type Directory[T any] struct {
	stub[T]
	MaxBytesPerBatch int64
	MaxFilesPerBatch int
	MaxLine          int
	Settle           int
}

// Dir reads the lines of the files that appear in a directory.
func Dir(fsys vfs.FS, dir string) *Directory[string] { return &Directory[string]{} }

// DirLines is Dir with the origin of each line.
func DirLines(fsys vfs.FS, dir string) *Directory[Line] { return &Directory[Line]{} }

// LineReader reads lines from an io.Reader.
type LineReader struct {
	stub[string]
	MaxBytes int64
	MaxLine  int
}

// Lines reads the lines of r.
func Lines(name string, r io.Reader) *LineReader { return &LineReader{} }

// Stdin reads the lines of standard input.
func Stdin() *LineReader { return &LineReader{} }

// SocketReader reads lines from a TCP connection.
type SocketReader struct {
	stub[string]
	MaxBytes int64
	MaxLine  int
	EndAtEOF bool
}

// Socket reads lines from addr ("host:port").
func Socket(addr string) *SocketReader { return &SocketReader{} }
