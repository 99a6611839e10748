// Package vfs is the file system as Statemill needs it: files are created
// exclusively, written once, synced and linked to their name; nothing is ever
// replaced or renamed.
//
// [FS] is the file system: [Disk] is that of the machine, [NewMem] a
// deterministic one in memory that knows what a crash would lose
// ([Mem.CrashClone]). Names are paths in the form of the operating system; join
// them with filepath.Join.
//
// [CreateExclusive] is the one way in which durable files come to be: a name is
// there whole and for good, or not at all, and who comes second is told so.
// [Store] is the same contract for whole objects: [NewDir] keeps them in a
// folder of an FS, [NewObjects] in an object store in memory, which has no
// locks; code written for a Store runs on both.
//
// For tests [WithFaults] and [WithStoreFaults] fail, cut, watch or freeze single
// calls by the rules of [Faults], and [WithLog] and [WithStoreLog] write down
// what was called in which order. Every implementation passes the public suites
// in vfstest.
//
// # What it needs of a file system
//
// Hard links and a sync of folders that can be relied upon (ext4, xfs, btrfs,
// zfs, APFS, NTFS have them). Without links CreateExclusive answers [ErrNoLinks]
// and writes nothing. FS.Lock is flock(2) on Linux, macOS and the BSDs, and an
// unshared open on Windows; elsewhere it answers errors.ErrUnsupported. Over
// NFS, flock is only as good as the server's lock service: what must hold
// between machines is decided by exclusive creation, never by a lock. Windows
// has no sync of folders; SyncDir does nothing there, and an open file keeps
// its name.
//
// It offers no append, no truncate and no rename: a file that has its final
// name never changes. Files of locks are the exception; they hold advice.
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
	// Lock takes an advisory lock, which is a file of that name that may be
	// there already and is never to be removed. Closing what it returns
	// releases the lock; so does the end of the process. holder is a short
	// text about the caller for the [*LockedError] that others get meanwhile.
	// Lock never waits. Where locks do not exist the error answers
	// errors.ErrUnsupported.
	Lock(name, holder string) (io.Closer, error)
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
