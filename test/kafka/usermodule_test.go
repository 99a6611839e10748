package kafkatest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUsersModuleHasNoFakeBroker: a program that uses the library, tidied, knows
// nothing of kfake.
func TestUsersModuleHasNoFakeBroker(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	files := map[string]string{
		"go.mod": "module example.com/user\n\ngo 1.26.0\n\nrequire github.com/statemill/statemill v0.0.0\n\nreplace github.com/statemill/statemill => " + root + "\n",
		"main.go": `package main

import (
	"context"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
)

func main() {
	dstream.Run(context.Background(), time.Second, func(ssc *dstream.StreamingContext) error {
		dstream.Print(kafka.DirectStream(ssc, "in", kafka.Brokers("localhost:9092"), kafka.Topics("t")), 10)
		return nil
	})
}
`,
		"main_test.go": `package main

import (
	"testing"

	"github.com/statemill/statemill/milltest"
)

func TestJob(t *testing.T) { _ = milltest.New }
`,
	}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-o", os.DevNull, "."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %v: %s", args, out)
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	require.NoError(t, err)
	require.Contains(t, string(sum), "github.com/segmentio/kafka-go", "the client is there")
	require.NotContains(t, string(sum), "kfake")
	require.NotContains(t, string(sum), "franz-go")
}
