package vfs

import (
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// memNode is a file or directory; a file may have several names by Link. What
// is durable stands beside what is visible. Guarded by Mem.mu.
type memNode struct {
	dir bool
	mod time.Time

	// A file: its bytes, of which the first synced ones are durable. Bytes are
	// only ever appended.
	data   []byte
	synced int

	// A directory: the names as all see them, those that are durable, and the
	// changes between the two in the order in which they were made.
	entries map[string]*memNode
	durable map[string]*memNode
	pending []memChange
}

// memChange is a name that was set, or removed if node is nil.
type memChange struct {
	name string
	node *memNode
}

func newMemDir(mod time.Time) *memNode {
	return &memNode{dir: true, mod: mod, entries: map[string]*memNode{}, durable: map[string]*memNode{}}
}

func (n *memNode) info(name string) Info {
	return Info{Name: name, Size: int64(len(n.data)), ModTime: n.mod, Dir: n.dir}
}

// set changes a name of a directory; nil removes it.
func (n *memNode) set(name string, to *memNode) {
	put(n.entries, name, to)
	n.pending = append(n.pending, memChange{name, to})
}

func (n *memNode) syncNames() {
	for _, c := range n.pending {
		put(n.durable, c.name, c.node)
	}
	n.pending = nil
}

func put(m map[string]*memNode, name string, to *memNode) {
	if to == nil {
		delete(m, name)
	} else {
		m[name] = to
	}
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

// root gives the root directory of a path and the elements below it.
func (m *Mem) root(name string) (*memNode, []string) {
	const sep = string(filepath.Separator)
	p := filepath.Clean(name)
	vol := filepath.VolumeName(p)
	rest, absolute := strings.CutPrefix(p[len(vol):], sep)
	root := vol + "."
	if absolute {
		root = vol + sep
	}
	n := m.roots[root]
	if n == nil {
		n = newMemDir(time.Time{})
		m.roots[root] = n
	}
	if rest == "" || rest == "." {
		return n, nil
	}
	return n, strings.Split(rest, sep)
}

func (m *Mem) find(op, name string) (*memNode, error) {
	if name == "" {
		return nil, pathErr(op, name, fs.ErrNotExist)
	}
	n, elems := m.root(name)
	for _, elem := range elems {
		if !n.dir {
			return nil, pathErr(op, name, errNotDir)
		}
		if n = n.entries[elem]; n == nil {
			return nil, pathErr(op, name, fs.ErrNotExist)
		}
	}
	return n, nil
}

func (m *Mem) findDir(op, name string) (*memNode, error) {
	n, err := m.find(op, name)
	if err == nil && !n.dir {
		err = pathErr(op, name, errNotDir)
	}
	return n, err
}

// parent gives the directory of a name and the name in it.
func (m *Mem) parent(op, name string) (*memNode, string, error) {
	p := filepath.Clean(name)
	if _, elems := m.root(p); len(elems) == 0 {
		return nil, "", pathErr(op, name, fs.ErrInvalid)
	}
	n, err := m.findDir(op, filepath.Dir(p))
	if err != nil {
		err.(*fs.PathError).Path = name
	}
	return n, filepath.Base(p), err
}

// add makes a new empty file.
func (m *Mem) add(op, name string) (*memNode, error) {
	if _, err := m.find(op, name); err == nil {
		return nil, pathErr(op, name, fs.ErrExist)
	}
	if name == "" {
		return nil, pathErr(op, name, fs.ErrNotExist)
	}
	dir, base, err := m.parent(op, name)
	if err != nil {
		return nil, err
	}
	n := &memNode{mod: m.tick()}
	dir.set(base, n)
	return n, nil
}
