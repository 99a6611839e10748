// Package vfs is the file system as Statemill needs it: files are created
// exclusively, written once, synced and linked to their name; nothing is ever
// replaced or renamed.
//
// [Disk] is the file system of the machine, [NewMem] a deterministic one in
// memory. Every implementation passes the public suite in vfstest. Names are
// paths in the form of the operating system; join them with filepath.Join.
//
// It offers no append, no truncate and no rename: a file that has its final
// name never changes.
package vfs

import (
	"io"
	"time"
)

// FS is a file system. Its methods may be called from any goroutine. Errors
// name the operation and the path and answer errors.Is for fs.ErrNotExist,
// fs.ErrExist, fs.ErrPermission, fs.ErrClosed and fs.ErrInvalid.
type FS interface {
	// Create creates a file for writing and fails with fs.ErrExist if the name
	// is taken. The file is durable only after its Sync and the SyncDir of its
	// directory.
	Create(name string) (File, error)
	// Open opens a file for reading. A directory is fs.ErrInvalid.
	Open(name string) (File, error)
	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]Info, error)
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// Link gives the file a second name and fails with fs.ErrExist if that is
	// taken: the atomic "put if absent".
	Link(oldname, newname string) error
	// MkdirAll creates a directory and its parents; one that exists is no error.
	MkdirAll(name string) error
	// SyncDir makes created, linked and removed names of the directory durable.
	SyncDir(name string) error
	// Stat describes a file or directory.
	Stat(name string) (Info, error)
	// Hostname names the machine, for ownership records.
	Hostname() (string, error)
	// PID is the number of this process, for ownership records.
	PID() int
}

// File is an open file. Reads and writes follow io's contracts. One goroutine
// uses it at a time, except that ReadAt may be called from several.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.Closer
	// Name is the path the file was created or opened with.
	Name() string
	// Sync makes what was written durable.
	Sync() error
	// Stat describes the file as it is now.
	Stat() (Info, error)
}

// Info describes a file or directory.
type Info struct {
	// Name is the last element of the path.
	Name string
	// Size is the length in bytes; 0 for a directory.
	Size int64
	// ModTime is the time of the last change of the content, in UTC.
	ModTime time.Time
	// Dir says that it is a directory.
	Dir bool
}
