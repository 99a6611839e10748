//go:build !plan9

package vfs_test

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

func TestIsLasting(t *testing.T) {
	wrapped := func(no syscall.Errno) error {
		return fmt.Errorf("put x: %w", &fs.PathError{Op: "open", Path: "x", Err: no})
	}
	for _, no := range []syscall.Errno{syscall.EROFS, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL} {
		require.True(t, vfs.IsLasting(wrapped(no)), no)
	}
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EMFILE, syscall.EINTR, syscall.ENOENT} {
		require.False(t, vfs.IsLasting(wrapped(no)), no)
	}
	require.False(t, vfs.IsLasting(nil))
	require.False(t, vfs.IsLasting(io.EOF))

	// As the disk says it.
	file := filepath.Join(t.TempDir(), "file")
	f, err := vfs.Disk().Create(file)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.True(t, vfs.IsLasting(vfs.Disk().MkdirAll(filepath.Join(file, "below"))))
	_, err = vfs.Disk().Create(filepath.Join(filepath.Dir(file), strings.Repeat("n", 5000)))
	require.True(t, vfs.IsLasting(err))
}
