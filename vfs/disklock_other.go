//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package vfs

import (
	"errors"
	"os"
)

// openLocked refuses: this system has no lock that ends with its process, and
// one that outlives it would lock out the next run.
func openLocked(name string) (*os.File, error) {
	return nil, pathErr("lock", name, errors.ErrUnsupported)
}
