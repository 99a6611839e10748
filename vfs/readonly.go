//go:build !plan9

package vfs

import (
	"errors"
	"syscall"
)

// IsReadOnly reports whether an error says that the file system cannot be written
// to at all, so that trying again is of no use.
func IsReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
