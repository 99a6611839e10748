package vfs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Mem is a file system in memory that behaves alike in every run: listings are
// sorted, and modification times come from a function. Its root directories
// ("/" and ".") exist from the start. It does not lose unsynced data; syncs
// only check that what they name is there.
type Mem struct {
	now  func() time.Time
	host string
	pid  int

	mu    sync.Mutex
	nodes map[string]*memNode // by cleaned path
	ticks int64
}

// memNode is a file or directory; several names may share one by Link.
// Guarded by Mem.mu.
type memNode struct {
	dir  bool
	data []byte
	mod  time.Time
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
	m := &Mem{host: "mem", pid: 1, nodes: map[string]*memNode{}}
	for _, o := range opts {
		o(m)
	}
	m.nodes["."] = &memNode{dir: true}
	m.nodes[string(filepath.Separator)] = &memNode{dir: true}
	return m
}

// Create creates a file for writing; see [FS].
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := filepath.Clean(name)
	if _, taken := m.nodes[p]; taken {
		return nil, pathErr("open", name, fs.ErrExist)
	}
	if err := m.parent("open", name); err != nil {
		return nil, err
	}
	n := &memNode{mod: m.tick()}
	m.nodes[p] = n
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
	if err := m.findDir("open", name); err != nil {
		return nil, err
	}
	list := []Info{}
	for _, p := range m.children(name) {
		list = append(list, m.nodes[p].info(p))
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
	if n.dir && len(m.children(name)) > 0 {
		return pathErr("remove", name, errors.New("directory not empty"))
	}
	delete(m.nodes, filepath.Clean(name))
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
	if _, taken := m.nodes[filepath.Clean(newname)]; taken {
		return pathErr("link", newname, fs.ErrExist)
	}
	if err := m.parent("link", newname); err != nil {
		return err
	}
	m.nodes[filepath.Clean(newname)] = n
	return nil
}

// MkdirAll creates a directory and its parents.
func (m *Mem) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var missing []string
	for p := filepath.Clean(name); ; p = filepath.Dir(p) {
		if n, ok := m.nodes[p]; ok {
			if !n.dir {
				return pathErr("mkdir", name, errNotDir)
			}
			break
		}
		missing = append(missing, p)
	}
	for _, p := range missing {
		m.nodes[p] = &memNode{dir: true, mod: m.tick()}
	}
	return nil
}

// SyncDir checks that the directory is there.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.findDir("sync", name)
}

// Stat describes a file or directory.
func (m *Mem) Stat(name string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("stat", name)
	if err != nil {
		return Info{}, err
	}
	return n.info(name), nil
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

func (n *memNode) info(path string) Info {
	return Info{Name: filepath.Base(path), Size: int64(len(n.data)), ModTime: n.mod, Dir: n.dir}
}

// tick gives the time of a change. The caller holds mu; now is the test's own
// function and takes no lock of ours.
func (m *Mem) tick() time.Time {
	if m.now != nil {
		return m.now().UTC()
	}
	m.ticks++
	return time.Unix(m.ticks, 0).UTC()
}

func (m *Mem) find(op, name string) (*memNode, error) {
	n, ok := m.nodes[filepath.Clean(name)]
	if !ok || name == "" {
		return nil, pathErr(op, name, fs.ErrNotExist)
	}
	return n, nil
}

func (m *Mem) findDir(op, name string) error {
	n, err := m.find(op, name)
	if err == nil && !n.dir {
		err = pathErr(op, name, errNotDir)
	}
	return err
}

// parent checks that the directory of name is there and one.
func (m *Mem) parent(op, name string) error {
	n, ok := m.nodes[filepath.Dir(filepath.Clean(name))]
	switch {
	case !ok || name == "":
		return pathErr(op, name, fs.ErrNotExist)
	case !n.dir:
		return pathErr(op, name, errNotDir)
	}
	return nil
}

func (m *Mem) children(dir string) []string {
	dir = filepath.Clean(dir)
	var list []string
	for p := range m.nodes {
		if p != dir && filepath.Dir(p) == dir && !strings.HasSuffix(p, string(filepath.Separator)) {
			list = append(list, p)
		}
	}
	return list
}
