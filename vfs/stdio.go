package vfs

import (
	"io"
	"os"
)

// Stdout is the standard output of the process: the one writer that is not a
// file of an FS, kept here so that no other room needs package os.
func Stdout() io.Writer { return os.Stdout }
