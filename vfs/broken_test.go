package vfs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
	"github.com/statemill/statemill/vfs/vfstest"
)

// broken is a file system with one fault that a real one might have.
type broken struct {
	*vfs.Mem
	how string
}

func (b broken) Create(name string) (vfs.File, error) {
	if b.how == "create replaces" {
		_ = b.Mem.Remove(name)
	}
	f, err := b.Mem.Create(name)
	if err == nil && b.how == "sync does nothing" {
		return noSync{f}, nil
	}
	return f, err
}

type noSync struct{ vfs.File }

func (noSync) Sync() error { return nil }

func (b broken) Link(from, to string) error {
	switch b.how {
	case "link replaces":
		_ = b.Mem.Remove(to)
	case "link is check then act":
		if _, err := b.Mem.Stat(to); err != nil {
			_ = b.Mem.Remove(to)
		}
		data, _ := vfs.ReadFile(b.Mem, from)
		return vfs.WriteFile(b.Mem, to, data)
	case "link says ok when taken":
		_ = b.Mem.Link(from, to)
		return nil
	}
	return b.Mem.Link(from, to)
}

func (b broken) SyncDir(name string) error {
	if b.how == "syncdir does nothing" {
		_, err := b.Mem.ReadDir(name)
		return err
	}
	return b.Mem.SyncDir(name)
}

func (b broken) ReadDir(name string) ([]vfs.Info, error) {
	list, err := b.Mem.ReadDir(name)
	switch b.how {
	case "readdir ends after 100":
		list = list[:min(len(list), 100)]
	case "readdir ends after 1000":
		list = list[:min(len(list), 1000)]
	}
	return list, err
}

func (b broken) Remove(name string) error {
	if b.how == "remove by prefix" {
		list, _ := b.Mem.ReadDir(filepath.Dir(name))
		for _, i := range list {
			if strings.HasPrefix(i.Name, filepath.Base(name)) && i.Name != filepath.Base(name) {
				_ = b.Mem.Remove(filepath.Join(filepath.Dir(name), i.Name))
			}
		}
	}
	return b.Mem.Remove(name)
}

func (b broken) Lock(name, holder string) (io.Closer, error) {
	l, err := b.Mem.Lock(name, holder)
	if b.how == "lock never held" && err != nil {
		return io.NopCloser(nil), nil
	}
	return l, err
}

// The suites notice what they are there for.
func TestSuitesCatchBrokenFileSystems(t *testing.T) {
	for how, want := range map[string]string{
		"none":                    "",
		"create replaces":         "CreateIsExclusive",
		"link replaces":           "CreateExclusiveHasOneWinner",
		"link says ok when taken": "CreateExclusive",
		"link is check then act":  "Link",
		"sync does nothing":       "CreateExclusiveIsDurable",
		"syncdir does nothing":    "TakenIsDurable",
		"lock never held":         "Lock",
		"readdir ends after 100":  "ReadDirOfMany",
		"readdir ends after 1000": "ReadDirOfMany",
		"remove by prefix":        "Remove",
	} {
		t.Run(how, func(t *testing.T) {
			wrap := func(fsys vfs.FS) vfs.FS { return broken{fsys.(*vfs.Mem), how} }
			found := vfstest.Failing(t, func(t *testing.T) (vfs.FS, string) { return wrap(newW(t)), "w" })
			found = append(found, vfstest.FailingCrash(t, crasher(wrap))...)
			found = append(found, vfstest.FailingStore(t, inMem("w", wrap))...)
			if want == "" {
				require.Empty(t, found)
			} else {
				require.Contains(t, found, want)
			}
		})
	}
}

// brokenStore is a store with one fault.
type brokenStore struct {
	*vfs.Objects
	how  string
	half *vfs.Objects
}

func (b brokenStore) PutIfAbsent(ctx context.Context, name string, write func(io.Writer) error) error {
	switch b.how {
	case "put replaces":
		var buf bytes.Buffer
		if err := write(&buf); err != nil {
			return err
		}
		_ = b.Objects.Delete(ctx, name)
		return putString(b.Objects, name, buf.String())
	case "put shows halves":
		return write(writerFunc(func(p []byte) (int, error) {
			old, _ := b.Objects.Get(ctx, name)
			_ = b.Objects.Delete(ctx, name)
			return len(p), putString(b.Objects, name, string(old)+string(p))
		}))
	case "put forgets":
		return b.half.PutIfAbsent(ctx, name, write)
	case "put says ok when taken":
		if err := b.Objects.PutIfAbsent(ctx, name, write); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	return b.Objects.PutIfAbsent(ctx, name, write)
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (b brokenStore) ReadAt(ctx context.Context, name string, p []byte, off int64) (int, error) {
	n, err := b.Objects.ReadAt(ctx, name, p, off)
	if b.how == "short reads" && err == io.EOF {
		err = nil
	}
	return n, err
}

func (b brokenStore) List(ctx context.Context, folder string) ([]vfs.Object, error) {
	list, err := b.Objects.List(ctx, folder)
	most := map[string]int{"list in pages": 2, "list ends after 100": 100, "list ends after 1000": 1000}[b.how]
	if most > 0 && len(list) > most {
		list = list[:most]
	}
	return list, err
}

func (b brokenStore) Delete(ctx context.Context, name string) error {
	if b.how == "delete of absent fails" {
		if _, err := b.Objects.Stat(ctx, name); err != nil {
			return err
		}
	}
	if b.how == "delete by prefix" {
		list, _ := b.Objects.List(ctx, "")
		for _, o := range list {
			if strings.HasPrefix(o.Name, name) {
				_ = b.Objects.Delete(ctx, o.Name)
			}
		}
	}
	return b.Objects.Delete(ctx, name)
}

func TestSuiteCatchesBrokenStores(t *testing.T) {
	for how, want := range map[string]string{
		"none":                   "",
		"put replaces":           "PutIsExclusive",
		"put shows halves":       "InvisibleUntilWhole",
		"put forgets":            "PutAndGet",
		"put says ok when taken": "OneWinnerOfMany",
		"short reads":            "Ranges",
		"list in pages":          "List",
		"delete of absent fails": "Delete",
		"list ends after 100":    "ListOfMany",
		"list ends after 1000":   "ListOfMany",
		"delete by prefix":       "DeleteIsOfOneName",
	} {
		t.Run(how, func(t *testing.T) {
			found := vfstest.FailingStore(t, func(*testing.T) vfstest.Stores {
				s := brokenStore{vfs.NewObjects(), how, vfs.NewObjects()}
				return vfstest.Stores{A: s, B: s, Crash: func() vfs.Store { return s.Clone() }}
			})
			if want == "" {
				require.Empty(t, found)
			} else {
				require.Contains(t, found, want)
			}
		})
	}
}
