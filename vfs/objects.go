package vfs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Objects is an object store in memory, in the shape of those in the cloud
// with conditional puts: no locks, no folders, no renames, strongly consistent.
// What has been put survives the process that put it.
type Objects struct {
	mu      sync.Mutex
	objects map[string][]byte // never changed once they are in
}

var _ Store = (*Objects)(nil)

// NewObjects returns an empty object store.
func NewObjects() *Objects { return &Objects{objects: map[string][]byte{}} }

// Clone returns a store of its own with the same objects.
func (o *Objects) Clone() *Objects {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &Objects{objects: maps.Clone(o.objects)}
}

// PutIfAbsent makes an object; see [Store].
func (o *Objects) PutIfAbsent(ctx context.Context, name string, write func(io.Writer) error) error {
	if err := checkName(ctx, "put", name); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := write(ctxWriter{ctx, &b}); err != nil {
		return fmt.Errorf("put %s: %w", name, hideExist(err))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, taken := o.objects[name]; taken {
		return pathErr("put", name, fs.ErrExist)
	}
	o.objects[name] = b.Bytes()
	return nil
}

func (o *Objects) find(ctx context.Context, op, name string) ([]byte, error) {
	if err := checkName(ctx, op, name); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	b, ok := o.objects[name]
	if !ok {
		return nil, pathErr(op, name, fs.ErrNotExist)
	}
	return b, nil
}

// Get returns all bytes of an object.
func (o *Objects) Get(ctx context.Context, name string) ([]byte, error) {
	b, err := o.find(ctx, "get", name)
	return bytes.Clone(b), err
}

// ReadAt reads a range of an object.
func (o *Objects) ReadAt(ctx context.Context, name string, p []byte, off int64) (int, error) {
	b, err := o.find(ctx, "readat", name)
	switch {
	case err != nil:
		return 0, err
	case off < 0:
		return 0, pathErr("readat", name, fmt.Errorf("negative offset: %w", fs.ErrInvalid))
	}
	return bytes.NewReader(b).ReadAt(p, off)
}

// Stat describes an object.
func (o *Objects) Stat(ctx context.Context, name string) (Object, error) {
	b, err := o.find(ctx, "stat", name)
	if err != nil {
		return Object{}, err
	}
	return Object{Name: name, Size: int64(len(b))}, nil
}

// List describes the objects below a folder.
func (o *Objects) List(ctx context.Context, folder string) ([]Object, error) {
	if err := checkFolder(ctx, "list", folder); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []Object
	for name, b := range o.objects {
		if strings.HasPrefix(name, folder) {
			list = append(list, Object{Name: name, Size: int64(len(b))})
		}
	}
	slices.SortFunc(list, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Leftovers returns none: an object that is not whole is nowhere.
func (o *Objects) Leftovers(ctx context.Context, folder string) ([]Leftover, error) {
	return nil, checkFolder(ctx, "list", folder)
}

// Delete removes an object.
func (o *Objects) Delete(ctx context.Context, name string) error {
	if err := checkName(ctx, "delete", name); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.objects, name)
	return nil
}

// Lock refuses: object stores have no locks.
func (o *Objects) Lock(_ context.Context, name, _ string) (io.Closer, error) {
	return nil, pathErr("lock", name, errors.ErrUnsupported)
}
