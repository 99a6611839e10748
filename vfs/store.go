package vfs

import (
	"context"
	"io"
	"io/fs"
	"strings"
)

// Store keeps whole, named, unchangeable objects: what a folder of a file
// system ([Dir]) and an object store ([Objects]) have in common. There is no
// append, no rename, and nothing is ever replaced.
//
// Names are slash-separated paths in the sense of fs.ValidPath, whose last
// element does not contain ".tmp."; others are fs.ErrInvalid. A name is either
// that of an object or a folder of others. Methods may be
// called from any goroutine. Errors name the object and answer errors.Is for
// fs.ErrNotExist, fs.ErrExist and fs.ErrInvalid. A context that is done ends a
// call with its error before or between bytes.
type Store interface {
	// PutIfAbsent makes an object of what write writes, whole and durable, or
	// fails with fs.ErrExist and leaves the one that is there, which is durable
	// then and can be read back: it may be one's own, if an earlier answer was
	// lost. After any other error the object is there whole or not at all; try
	// again. write may be called more than once and must write the same bytes
	// each time; its error is wrapped and no object comes to be.
	PutIfAbsent(ctx context.Context, name string, write func(io.Writer) error) error
	// Get returns all bytes of an object; they belong to the caller.
	Get(ctx context.Context, name string) ([]byte, error)
	// ReadAt reads a range into p, as io.ReaderAt does.
	ReadAt(ctx context.Context, name string, p []byte, off int64) (int, error)
	// Stat describes an object; it is the existence probe.
	Stat(ctx context.Context, name string) (Object, error)
	// List describes the objects below a folder ("" for all, else ending in a
	// slash), at any depth, sorted by name. A folder without objects is empty,
	// not an error. Half-written objects are not in it.
	List(ctx context.Context, folder string) ([]Object, error)
	// Leftovers tells what broken-off or running puts hold below a folder, as
	// List does. Stores that show nothing of them return none.
	Leftovers(ctx context.Context, folder string) ([]Leftover, error)
	// Delete removes an object or leftover by its name; an absent one is no
	// error. A crash may bring it back.
	Delete(ctx context.Context, name string) error
	// Lock takes an advisory lock as FS.Lock does. Stores without locks return
	// an error that answers errors.ErrUnsupported. A lock may be listed as an
	// object of its name.
	Lock(ctx context.Context, name, holder string) (io.Closer, error)
}

// Object describes an object of a Store.
type Object struct {
	// Name is the full name, slash-separated.
	Name string
	// Size is the length in bytes.
	Size int64
}

// Leftover is a file of a put that has not ended, or never will.
type Leftover struct {
	// Name is to be given to Delete.
	Name string
	// Target is the name of the object that it was to become.
	Target string
	// Tag is the tag of the store that wrote it.
	Tag string
}

// NewReader reads an object of which the description is known, range by range:
// each Read and ReadAt is one ReadAt of the store, so read large pieces.
func NewReader(ctx context.Context, s Store, o Object) *io.SectionReader {
	return io.NewSectionReader(objectReader{ctx, s, o.Name}, 0, o.Size)
}

type objectReader struct {
	// The reader's life is that of one call of its owner, so it may hold the
	// context.
	ctx  context.Context
	s    Store
	name string
}

func (r objectReader) ReadAt(p []byte, off int64) (int, error) {
	return r.s.ReadAt(r.ctx, r.name, p, off)
}

// tempMark stands between an object's name and the tag in temporary names.
const tempMark = ".tmp."

func checkName(ctx context.Context, op, name string) error {
	if err := ctx.Err(); err != nil {
		return pathErr(op, name, context.Cause(ctx))
	}
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00") ||
		strings.Contains(name[strings.LastIndexByte(name, '/')+1:], tempMark) {
		return pathErr(op, name, fs.ErrInvalid)
	}
	return nil
}

// checkFolder accepts "" and folder names that end in a slash.
func checkFolder(ctx context.Context, op, folder string) error {
	dir, slash := strings.CutSuffix(folder, "/")
	if folder != "" && !slash {
		return pathErr(op, folder, fs.ErrInvalid)
	}
	if folder == "" {
		dir = "all"
	}
	return checkName(ctx, op, dir)
}

// ctxWriter stops a long put when its context is done.
type ctxWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w ctxWriter) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.w.Write(p)
}
