package vfs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Mem is a file system in memory that behaves alike in every run: listings are
// sorted, and modification times come from a function. Its root directories
// ("/" and ".") exist from the start. It knows what is durable: [Mem.CrashClone]
// gives what a machine would find after a crash.
type Mem struct {
	now  func() time.Time
	host string
	pid  int

	mu    sync.Mutex
	roots map[string]*memNode // ".", "/" and, on Windows, those of volumes
	locks map[string]string   // held locks by cleaned path: their holders
	ticks int64
}

// MemOption changes how NewMem's file system presents itself.
type MemOption func(*Mem)

// WithNow takes modification times from now, which may be called from any
// goroutine that writes. The default starts at the Unix epoch and moves on by
// one second with each change, so later changes have later times.
func WithNow(now func() time.Time) MemOption { return func(m *Mem) { m.now = now } }

// WithOwner sets what Hostname and PID return: by default "mem" and 1.
func WithOwner(host string, pid int) MemOption {
	return func(m *Mem) { m.host, m.pid = host, pid }
}

// NewMem returns an empty file system in memory.
func NewMem(opts ...MemOption) *Mem {
	m := &Mem{host: "mem", pid: 1, roots: map[string]*memNode{}, locks: map[string]string{}}
	for _, o := range opts {
		o(m)
	}
	return m
}

// Create creates a file for writing; see [FS].
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.add("open", name)
	if err != nil {
		return nil, err
	}
	return &memFile{m: m, n: n, name: name, writable: true}, nil
}

// Open opens a file for reading; see [FS].
func (m *Mem) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.dir {
		return nil, pathErr("open", name, fmt.Errorf("is a directory: %w", fs.ErrInvalid))
	}
	return &memFile{m: m, n: n, name: name}, nil
}

// ReadDir lists a directory, sorted by name.
func (m *Mem) ReadDir(name string) ([]Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.findDir("open", name)
	if err != nil {
		return nil, err
	}
	list := make([]Info, 0, len(n.entries))
	for name, child := range n.entries {
		list = append(list, child.info(name))
	}
	slices.SortFunc(list, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Remove removes a name or an empty directory; open files stay readable.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("remove", name)
	if err != nil {
		return err
	}
	dir, base, err := m.parent("remove", name)
	if err != nil {
		return err
	}
	if len(n.entries) > 0 {
		return pathErr("remove", name, errors.New("directory not empty"))
	}
	dir.set(base, nil)
	return nil
}

// Link gives the file a second name; see [FS].
func (m *Mem) Link(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("link", oldname)
	if err != nil {
		return err
	}
	if n.dir {
		return pathErr("link", oldname, fmt.Errorf("is a directory: %w", fs.ErrPermission))
	}
	if _, err := m.find("link", newname); err == nil {
		return pathErr("link", newname, fs.ErrExist)
	}
	dir, base, err := m.parent("link", newname)
	if err != nil {
		return err
	}
	dir.set(base, n)
	return nil
}

// MkdirAll creates a directory and its parents.
func (m *Mem) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, elems := m.root(name)
	for _, elem := range elems {
		next := n.entries[elem]
		if next == nil {
			next = newMemDir(m.tick())
			n.set(elem, next)
		}
		if n = next; !n.dir {
			return pathErr("mkdir", name, errNotDir)
		}
	}
	return nil
}

// SyncDir makes the names in the directory durable; the directory's own name
// needs a SyncDir of its parent.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.findDir("sync", name)
	if err == nil {
		n.syncNames()
	}
	return err
}

// Stat describes a file or directory.
func (m *Mem) Stat(name string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("stat", name)
	if err != nil {
		return Info{}, err
	}
	return n.info(filepath.Base(name)), nil
}

// SetModTime gives a file or directory another modification time: tests of
// watched directories play files that are old or from the future.
func (m *Mem) SetModTime(name string, t time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("chtimes", name)
	if err != nil {
		return err
	}
	n.mod = t.UTC()
	return nil
}

// Hostname returns the host of WithOwner.
func (m *Mem) Hostname() (string, error) { return m.host, nil }

// PID returns the pid of WithOwner.
func (m *Mem) PID() int { return m.pid }

var errNotDir = fmt.Errorf("not a directory: %w", fs.ErrInvalid)

func pathErr(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}
