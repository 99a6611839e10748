//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package vfs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openLocked opens the lock's file and takes flock(2) on it. The lock belongs
// to the open file, so two opens exclude one another within a process too.
func openLocked(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			break
		}
	}
	switch {
	case err == nil:
		return f, nil
	case err == syscall.EWOULDBLOCK:
		err = heldBy(name)
	case err == syscall.ENOLCK || errors.Is(err, errors.ErrUnsupported):
		err = pathErr("lock", name, fmt.Errorf("%w: the file system has no flock (%w)", errors.ErrUnsupported, err))
	default:
		err = pathErr("lock", name, err)
	}
	f.Close()
	return nil, err
}
