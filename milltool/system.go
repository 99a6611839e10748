package milltool

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/vfs"
)

// System is the Env of this process: its arguments and writers, the disk, the
// clock. It is the only place of the package that knows the process.
func System() Env {
	return Env{
		Name:   strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"),
		Args:   os.Args[1:],
		Stdout: os.Stdout, Stderr: os.Stderr,
		FS:    vfs.Disk(),
		Now:   func() int64 { return clock.System().Now().UnixNano() },
		Wait:  wait,
		ID:    rand.Text,
		Alive: alive, Resolve: filepath.EvalSymlinks,
	}
}

// wait sleeps.
func wait(ctx context.Context, d time.Duration) error {
	if clock.Wait(ctx, clock.System(), d) != nil {
		return ctx.Err()
	}
	return nil
}

// alive asks the system for a process. In doubt it lives.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH)
}
