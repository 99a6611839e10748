package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

// probeBytes is what a folder must have room for at the least.
const probeBytes = 4096

// usable says at once whether files can be made durable in a folder, which is made if
// it is not there. Later the library would try for half a minute, as the disk may be
// free again by then.
func usable(disk vfs.FS, dir string) error {
	err := probe(disk, dir)
	if err == nil {
		return nil
	}
	return fmt.Errorf("the folder %s cannot be written to: %w: name a -checkpoint folder on a disk that has room, and that this user may write to", dir, err)
}

// probe makes a file the way the library does, and deletes it.
func probe(disk vfs.FS, dir string) error {
	if err := disk.MkdirAll(dir); err != nil {
		return err
	}
	name := fmt.Sprintf(".probe-%d", disk.PID())
	err := vfs.CreateExclusive(disk, dir, name, name+".tmp", func(w io.Writer) error {
		_, err := w.Write(make([]byte, probeBytes))
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrExist) {
		_ = disk.Remove(filepath.Join(dir, name+".tmp")) // if it is there
		return err
	}
	return disk.Remove(filepath.Join(dir, name))
}

// inUse explains a lock that another process has.
func inUse(dir string, err error) error {
	var locked *vfs.LockedError
	if !errors.As(err, &locked) {
		return err
	}
	who := locked.Holder
	if who == "" {
		who = "one that has not named itself yet"
	}
	return fmt.Errorf("the folder %s is in use by another process (%s): wait for its end or stop it, or name another -checkpoint folder: %w",
		dir, who, vfs.ErrLocked)
}

// withNextStep adds to the error of a run on a checkpoint folder what it does not say
// itself: which folder, or what to do.
func withNextStep(dir string, err error) error {
	switch {
	case dir == "" || err == nil:
		return err
	case errors.Is(err, checkpoint.ErrOwned):
		return fmt.Errorf("the folder %s is in use: %w; or name another -checkpoint folder", dir, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: make room and start it again: it goes on from what is in %s", err, dir)
	}
	return err
}
