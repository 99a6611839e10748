package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/statemill/statemill/internal/sabotage"
)

// ErrNoLinks says that a file system has no hard links (FAT, some network and
// FUSE mounts), so that a file cannot be put under a name without the danger of
// replacing another. There is no fallback by rename, because rename replaces:
// use another file system, or an object store.
var ErrNoLinks = errors.New("the file system has no hard links: use another one or an object store")

// CreateExclusive makes the file name in dir, whole and durable, or leaves the
// name as it is. What write writes goes to the file temp of the same folder,
// which is synced, linked to its name, made durable by a sync of the folder,
// and only then loses its first name. So the name is seen with all its bytes or
// not at all, after any crash, and is never replaced.
//
// temp must belong to this caller alone; what an earlier try left under it is
// removed. If somebody else's clean-up takes it away meanwhile, the error is
// fs.ErrNotExist. write is called once, with a writer without buffer that is invalid
// afterwards. dir must exist and be durable itself.
//
// A taken name is an error for which errors.Is(err, fs.ErrExist) holds. The
// folder was synced then too, so that what the caller reads back is durable;
// if it is its own file, an earlier try succeeded and only its answer was lost.
// After any other error the outcome is open if the link was reached: try again,
// and read back if the name is taken. [ErrNoLinks] says that it can never work
// here.
func CreateExclusive(fsys FS, dir, name, temp string, write func(io.Writer) error) error {
	from, to := filepath.Join(dir, temp), filepath.Join(dir, name)
	err := writeTemp(fsys, from, write)
	if err == nil {
		err = linkDurable(fsys, dir, from, to)
	}
	// A temporary name that stays is no fault of the new file: nobody believes
	// it, and clean-up finds it.
	_ = fsys.Remove(from)
	if err != nil {
		return fmt.Errorf("create %s: %w", to, err)
	}
	return nil
}

// writeTemp writes and syncs the file under its temporary name.
func writeTemp(fsys FS, name string, write func(io.Writer) error) error {
	f, err := fsys.Create(name)
	if errors.Is(err, fs.ErrExist) {
		// Left by a try that did not come to its end. If it reached the link,
		// the file lives on under its proper name.
		if err = fsys.Remove(name); err == nil {
			f, err = fsys.Create(name)
		}
	}
	if err != nil {
		return hideExist(err)
	}
	// A file of which the sync failed is never synced again: the system may
	// have dropped its bytes and call the next sync a success. The next try
	// writes a new file.
	err = write(struct{ io.Writer }{f})
	if err == nil && !sabotage.On("no-fsync-file") {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return hideExist(err)
}

// linkDurable puts the file under its name, if that is free, and syncs the
// folder in either case.
func linkDurable(fsys FS, dir, from, to string) error {
	err := fsys.Link(from, to)
	taken := errors.Is(err, fs.ErrExist)
	if taken && sabotage.On("create-replaces") {
		_ = fsys.Remove(to)
		err, taken = fsys.Link(from, to), false
	}
	switch {
	case taken:
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission):
		// link(2) has EPERM for file systems without links, and the folder has
		// just shown that it can be written to.
		return fmt.Errorf("%w (%w)", ErrNoLinks, err)
	case err != nil:
		return err
	}
	if sabotage.On("no-fsync-folder") {
		return err
	}
	if serr := fsys.SyncDir(dir); serr != nil {
		return hideExist(serr)
	}
	return err
}

// hideExist keeps an error that is not about the proper name from being taken
// for "the name is taken".
func hideExist(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%v", err)
	}
	return err
}
