package exactlyonce

import (
	"context"
	"io"
	"strings"

	"github.com/statemill/statemill/vfs"
)

// PutIfAbsent makes an object of the folder.
func (p prefixed) PutIfAbsent(ctx context.Context, name string, write func(io.Writer) error) error {
	return p.Objects.PutIfAbsent(ctx, p.prefix+name, write)
}

// Get reads an object of the folder.
func (p prefixed) Get(ctx context.Context, name string) ([]byte, error) {
	return p.Objects.Get(ctx, p.prefix+name)
}

// ReadAt reads a range.
func (p prefixed) ReadAt(ctx context.Context, name string, b []byte, off int64) (int, error) {
	return p.Objects.ReadAt(ctx, p.prefix+name, b, off)
}

// Stat describes an object.
func (p prefixed) Stat(ctx context.Context, name string) (vfs.Object, error) {
	o, err := p.Objects.Stat(ctx, p.prefix+name)
	o.Name = name
	return o, err
}

// List lists a folder of the folder.
func (p prefixed) List(ctx context.Context, folder string) ([]vfs.Object, error) {
	list, err := p.Objects.List(ctx, p.prefix+folder)
	for i := range list {
		list[i].Name = strings.TrimPrefix(list[i].Name, p.prefix)
	}
	return list, err
}

// Delete removes an object.
func (p prefixed) Delete(ctx context.Context, name string) error {
	return p.Objects.Delete(ctx, p.prefix+name)
}

// Lock refuses.
func (p prefixed) Lock(ctx context.Context, name, holder string) (io.Closer, error) {
	return p.Objects.Lock(ctx, p.prefix+name, holder)
}
