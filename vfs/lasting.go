//go:build !plan9

package vfs

import (
	"errors"
	"syscall"
)

// IsLasting reports whether an error of the system says that the same call would
// never succeed, so that trying again is of no use and its user should be told at
// once: the file system is read-only (EROFS), a folder of the path is a file
// (ENOTDIR), or a file a folder (EISDIR), a name is too long (ENAMETOOLONG), links
// go round (ELOOP), or the system does not know what was asked for (EINVAL).
// Missing rights answer errors.Is for fs.ErrPermission. A full disk, a quota, too
// many open files and faults of the device may pass.
func IsLasting(err error) bool {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return false
	}
	switch no {
	case syscall.EROFS, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL:
		return true
	}
	return false
}
