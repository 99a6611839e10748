package vfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Dir is a Store in a folder of a file system. Objects are files made by
// [CreateExclusive]; their folders come to be, durably, when they are needed.
type Dir struct {
	fsys FS
	root string
	tag  string

	mu      sync.Mutex
	folders map[string]bool // that this store has made durable
	writing map[string]bool // temporary names in use
}

var _ Store = (*Dir)(nil)

// NewDir returns the store in the folder root, which need not exist yet;
// nothing is touched before the first call. tag is in the temporary names of
// this store, so it must differ from that of every other store that writes to
// the same root at any time (a term or a run's id); it consists of letters,
// digits, '-' and '_'. On the disk a relative root is one of the process's
// working directory as it is now, whatever that is later.
func NewDir(fsys FS, root, tag string) (*Dir, error) {
	bad := func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_')
	}
	if tag == "" || strings.ContainsFunc(tag, bad) {
		return nil, fmt.Errorf("store %s: tag %q: %w: use letters, digits, - and _", root, tag, fs.ErrInvalid)
	}
	root = filepath.Clean(root)
	if fsys == Disk() {
		// Else a program that changes its directory would tear the store in two.
		var err error
		if root, err = filepath.Abs(root); err != nil {
			return nil, fmt.Errorf("store %s: %w", root, err)
		}
	}
	return &Dir{fsys: fsys, root: root, tag: tag, folders: map[string]bool{}, writing: map[string]bool{}}, nil
}

// path is the file of an object.
func (d *Dir) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// PutIfAbsent makes an object; see [Store].
func (d *Dir) PutIfAbsent(ctx context.Context, name string, write func(io.Writer) error) error {
	if err := checkName(ctx, "put", name); err != nil {
		return err
	}
	dir, base := filepath.Split(d.path(name))
	dir = filepath.Clean(dir)
	if err := d.folder(dir); err != nil {
		return fmt.Errorf("put %s: %w", name, hideExist(err))
	}
	temp, free := d.temp(dir, base)
	defer free()
	return CreateExclusive(d.fsys, dir, base, temp, func(w io.Writer) error { return write(ctxWriter{ctx, w}) })
}

// temp gives a temporary name that no running put of this store uses. Only
// puts of one name side by side get a number, so the usual name is the same
// after a restart of the same try and is then used again.
func (d *Dir) temp(dir, base string) (temp string, free func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	temp = base + tempMark + d.tag
	for i := 2; d.writing[filepath.Join(dir, temp)]; i++ {
		temp = base + tempMark + d.tag + "." + strconv.Itoa(i)
	}
	full := filepath.Join(dir, temp)
	d.writing[full] = true
	return temp, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.writing, full)
	}
}

// folder makes a folder durable, once. Folders that exist are synced too: their
// maker may have died before it came to that.
func (d *Dir) folder(dir string) error {
	made, foreign, err := d.unsure(dir)
	if err != nil || len(made) == 0 {
		return err
	}
	if err := d.fsys.MkdirAll(dir); err != nil {
		return err
	}
	// From the top, so that a name is durable before what hangs on it.
	for _, p := range slices.Backward(made) {
		err := d.fsys.SyncDir(filepath.Dir(p))
		if p == d.root && foreign && errors.Is(err, fs.ErrPermission) {
			err = nil // a root that was handed to us in a folder that is not ours
		}
		if err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.folders) > maxFolders { // a store that lives long and makes ever new ones
		clear(d.folders)
	}
	for _, p := range made {
		d.folders[p] = true
	}
	return nil
}

// maxFolders bounds what a store remembers of its folders. One that is forgotten is
// made durable once more.
const maxFolders = 10_000

// unsure lists the folders from dir up to the root of which this store does not
// know that they are durable, and those above the root that do not exist.
// foreign says that the root was there.
func (d *Dir) unsure(dir string) (list []string, foreign bool, err error) {
	for p := dir; ; p = filepath.Dir(p) {
		d.mu.Lock()
		done := d.folders[p]
		d.mu.Unlock()
		if done {
			return list, false, nil // and then all above
		}
		list = append(list, p)
		if p == d.root {
			break
		}
	}
	for p := d.root; ; p = filepath.Dir(p) {
		_, err := d.fsys.Stat(p)
		switch {
		case err == nil:
			return list, p == d.root, nil
		case !errors.Is(err, fs.ErrNotExist) || p == filepath.Dir(p):
			return nil, false, err
		case p != d.root:
			list = append(list, p)
		}
	}
}

// Get returns all bytes of an object.
func (d *Dir) Get(ctx context.Context, name string) ([]byte, error) {
	if err := checkName(ctx, "get", name); err != nil {
		return nil, err
	}
	return ReadFile(d.fsys, d.path(name))
}

// ReadAt reads a range of an object.
func (d *Dir) ReadAt(ctx context.Context, name string, p []byte, off int64) (int, error) {
	if err := checkName(ctx, "readat", name); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathErr("readat", name, fmt.Errorf("negative offset: %w", fs.ErrInvalid))
	}
	f, err := d.fsys.Open(d.path(name))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.ReadAt(p, off)
}

// Stat describes an object.
func (d *Dir) Stat(ctx context.Context, name string) (Object, error) {
	if err := checkName(ctx, "stat", name); err != nil {
		return Object{}, err
	}
	i, err := d.fsys.Stat(d.path(name))
	if err == nil && i.Dir {
		err = pathErr("stat", d.path(name), fs.ErrNotExist) // a folder is no object
	}
	if err != nil {
		return Object{}, err
	}
	return Object{Name: name, Size: i.Size}, nil
}

// List describes the objects below a folder.
func (d *Dir) List(ctx context.Context, folder string) ([]Object, error) {
	var list []Object
	err := d.walk(ctx, folder, func(name string, i Info) {
		if !strings.Contains(i.Name, tempMark) {
			list = append(list, Object{Name: name, Size: i.Size})
		}
	})
	slices.SortFunc(list, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	return list, err
}

// Leftovers tells the temporary files below a folder, those of running puts
// too.
func (d *Dir) Leftovers(ctx context.Context, folder string) ([]Leftover, error) {
	var list []Leftover
	err := d.walk(ctx, folder, func(name string, i Info) {
		if target, rest, ok := strings.Cut(name, tempMark); ok {
			tag, _, _ := strings.Cut(rest, ".")
			list = append(list, Leftover{Name: name, Target: target, Tag: tag})
		}
	})
	slices.SortFunc(list, func(a, b Leftover) int { return cmp.Compare(a.Name, b.Name) })
	return list, err
}

func (d *Dir) walk(ctx context.Context, folder string, visit func(name string, i Info)) error {
	if err := checkFolder(ctx, "list", folder); err != nil {
		return err
	}
	infos, err := d.fsys.ReadDir(d.path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, i := range infos {
		if !i.Dir {
			visit(folder+i.Name, i)
		} else if err == nil {
			err = d.walk(ctx, folder+i.Name+"/", visit)
		}
	}
	return err
}

// Delete removes an object or leftover.
func (d *Dir) Delete(ctx context.Context, name string) error {
	target, _, _ := strings.Cut(name, tempMark)
	if err := checkName(ctx, "delete", target); err != nil {
		return err
	}
	if !fs.ValidPath(name) {
		return pathErr("delete", name, fs.ErrInvalid)
	}
	// A folder is no object; removing an empty one would take the ground from
	// under later puts.
	i, err := d.fsys.Stat(d.path(name))
	if err == nil && !i.Dir {
		err = d.fsys.Remove(d.path(name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// Lock takes an advisory lock; see [FS].
func (d *Dir) Lock(ctx context.Context, name, holder string) (io.Closer, error) {
	if err := checkName(ctx, "lock", name); err != nil {
		return nil, err
	}
	p := d.path(name)
	if err := d.folder(filepath.Dir(p)); err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return d.fsys.Lock(p, holder)
}
