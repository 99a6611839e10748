package vfs

import (
	"io"
	"io/fs"
	"path/filepath"
	"sync"
)

// memLock is a held lock of a Mem.
type memLock struct {
	m    *Mem
	n    *memNode
	name string
	once sync.Once
}

// Lock takes the advisory lock name; see [FS]. A [Mem.CrashClone] has none
// held.
func (m *Mem) Lock(name, holder string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := filepath.Clean(name)
	if by, held := m.locks[p]; held {
		return nil, &LockedError{Path: name, Holder: by}
	}
	n, err := m.find("lock", name)
	if err != nil {
		n, err = m.add("lock", name)
	} else if n.dir {
		err = pathErr("lock", name, fs.ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	n.data, n.synced, n.mod = []byte(holder), 0, m.tick()
	m.locks[p] = holder
	return &memLock{m: m, n: n, name: p}, nil
}

// Close releases the lock.
func (l *memLock) Close() error {
	err := pathErr("unlock", l.name, fs.ErrClosed)
	l.once.Do(func() {
		l.m.mu.Lock()
		defer l.m.mu.Unlock()
		delete(l.m.locks, l.name)
		l.n.data, err = nil, nil
	})
	return err
}
