package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
)

// memFile is an open file of Mem. The offset belongs to the handle, the bytes
// to the node.
type memFile struct {
	m        *Mem
	n        *memNode
	name     string
	writable bool

	mu     sync.Mutex // protects what follows; taken before m.mu
	off    int
	closed bool
}

func (f *memFile) Name() string { return f.name }

func (f *memFile) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.readAt("read", p, int64(f.off))
	f.off += n
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if off < 0 {
		return 0, pathErr("readat", f.name, fmt.Errorf("negative offset: %w", fs.ErrInvalid))
	}
	return f.readAt("readat", p, off)
}

func (f *memFile) readAt(op string, p []byte, off int64) (int, error) {
	if f.closed {
		return 0, pathErr(op, f.name, fs.ErrClosed)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, pathErr("write", f.name, fs.ErrClosed)
	}
	if !f.writable {
		return 0, pathErr("write", f.name, fmt.Errorf("opened for reading: %w", fs.ErrPermission))
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	over := copy(f.n.data[f.off:], p)
	f.n.data = append(f.n.data, p[over:]...)
	f.n.synced = min(f.n.synced, f.off)
	f.off += len(p)
	f.n.mod = f.m.tick()
	return len(p), nil
}

func (f *memFile) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return pathErr("sync", f.name, fs.ErrClosed)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.synced = len(f.n.data)
	return nil
}

func (f *memFile) Stat() (Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return Info{}, pathErr("stat", f.name, fs.ErrClosed)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.n.info(filepath.Base(f.name)), nil
}

func (f *memFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return pathErr("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	return nil
}
