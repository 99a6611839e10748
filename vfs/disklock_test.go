package vfs_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// TestHoldLock is the other process of the test below.
func TestHoldLock(t *testing.T) {
	name := os.Getenv("STATEMILL_TEST_LOCK")
	if name == "" {
		t.Skip("only as a child process")
	}
	_, err := vfs.Disk().Lock(name, "the child")
	require.NoError(t, err)
	fmt.Println("locked")
	_, _ = io.ReadAll(os.Stdin) // until it is killed
}

// A lock excludes other processes, tells who holds it, and ends with its
// process however that ends.
func TestDiskLockEndsWithItsProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	child := exec.Command(os.Args[0], "-test.run=^TestHoldLock$")
	child.Env = append(os.Environ(), "STATEMILL_TEST_LOCK="+name)
	stdin, err := child.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "locked\n", line)

	_, err = vfs.Disk().Lock(name, "me")
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.ErrorContains(t, err, "the child")
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	held, err := vfs.Disk().Lock(name, "me")
	require.NoError(t, err)
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "me", string(b))

	// A lock file made anew under the holder's feet is another lock; closing
	// the first does not touch it.
	require.NoError(t, os.Remove(name))
	second, err := vfs.Disk().Lock(name, "second")
	require.NoError(t, err)
	require.NoError(t, held.Close())
	b, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "second", string(b))
	require.NoError(t, second.Close())
}
