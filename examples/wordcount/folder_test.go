package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

// Whatever the disk refuses is told before anything starts, and nothing stays behind.
func TestUsable(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, usable(mem, "a/wc"))
	list, err := mem.ReadDir("a/wc")
	require.NoError(t, err)
	require.Empty(t, list)
	for _, cause := range []error{fs.ErrPermission, syscall.ENOSPC, syscall.EROFS, vfs.ErrNoLinks} {
		for k := 1; ; k++ {
			var f vfs.Faults
			f.Fail(vfs.Rule{Kinds: vfs.KindWrites, K: k, Err: cause})
			err := usable(vfs.WithFaults(vfs.NewMem(), &f), "a/wc")
			if f.Hits() == 0 {
				require.Greater(t, k, 3)
				break
			}
			if err == nil {
				continue // the clean-up of a temporary file has failed: the file is there
			}
			require.ErrorIs(t, err, cause)
			require.ErrorContains(t, err, "the folder a/wc cannot be written to: ")
			require.ErrorContains(t, err, "name a -checkpoint folder on a disk that has room")
		}
	}
}

// The program says it at once, for the checkpoint and for the log beside it.
func TestCheckpointThatCannotBe(t *testing.T) {
	in := novel(t, 10)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file+".kafka", nil, 0o644))
	for name, args := range map[string][]string{
		"a file":       {"-checkpoint", in, in},
		"in a file":    {"-files", "-checkpoint", filepath.Join(in, "wc"), in},
		"the log's":    {"-checkpoint", file, in},
		"with brokers": {"-brokers", "127.0.0.1:1", "-topic", "t", "-checkpoint", in},
	} {
		status, out, errs := runIt(args, "")
		assert.Equal(t, 1, status, name)
		assert.Regexp(t, `^wordcount: the folder \S+ cannot be written to: .*: name a -checkpoint folder`, errs, name)
		assert.Empty(t, out, name)
	}
}

func TestNextSteps(t *testing.T) {
	require.NoError(t, withNextStep("wc", nil))
	other := errors.New("other")
	require.Equal(t, other, withNextStep("wc", other))
	full := fmt.Errorf("put offsets/3: %w", syscall.ENOSPC)
	require.Equal(t, full, withNextStep("", full))
	require.EqualError(t, withNextStep("wc", full), "put offsets/3: no space left on device: make room and start it again: it goes on from what is in wc")
	require.ErrorContains(t, withNextStep("wc", &checkpoint.OwnedError{Run: "r", Host: "h", PID: 7}), "the folder wc is in use: ")
	require.Equal(t, other, inUse("wc.kafka", other))
	require.EqualError(t, inUse("wc.kafka", &vfs.LockedError{Path: "lock"}),
		"the folder wc.kafka is in use by another process (one that has not named itself yet): wait for its end or stop it, or name another -checkpoint folder: locked by another holder")
}
