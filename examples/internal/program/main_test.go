//go:build unix

package program

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain is a program, too, that does not end by itself and does not hear of interrupts.
func TestMain(m *testing.M) {
	if os.Getenv("PROGRAM_MAIN") == "" {
		os.Exit(m.Run())
	}
	Main(func(ctx context.Context, _ []string, stdout, _ io.Writer) int {
		fmt.Fprintln(stdout, "runs")
		<-ctx.Done()
		fmt.Fprintln(stdout, "finishes its batch")
		_, _ = io.Copy(io.Discard, os.Stdin) // which its parent does not close
		return 0
	})
}

// report 37: the second Ctrl-C ends a program at once, whatever it is doing.
func TestSecondInterrupt(t *testing.T) {
	for _, first := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p := exec.CommandContext(ctx, os.Args[0])
		p.Env = append(os.Environ(), "PROGRAM_MAIN=1")
		_, err := p.StdinPipe()
		require.NoError(t, err)
		out, err := p.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, p.Start())
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan())
		require.Equal(t, "runs", lines.Text())
		require.NoError(t, p.Process.Signal(first))
		require.True(t, lines.Scan())
		require.Equal(t, "finishes its batch", lines.Text())
		require.NoError(t, p.Process.Signal(os.Interrupt))
		require.Error(t, p.Wait())
		status := p.ProcessState.Sys().(syscall.WaitStatus)
		require.True(t, status.Signaled())
		require.Equal(t, syscall.SIGINT, status.Signal(), "not killed by the test's own time limit")
	}
}
