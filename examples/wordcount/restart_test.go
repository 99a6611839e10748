package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/kafka/embedded"
)

// novel writes a text of that many lines.
func novel(t *testing.T, lines int) string {
	var text bytes.Buffer
	random := rand.New(rand.NewPCG(1, 2))
	for range lines {
		for range random.IntN(8) {
			fmt.Fprintf(&text, "w%d ", random.IntN(1+random.IntN(2000)))
		}
		text.WriteByte('\n')
	}
	name := filepath.Join(t.TempDir(), "novel.txt")
	require.NoError(t, os.WriteFile(name, text.Bytes(), 0o644))
	return name
}

// An interrupted program goes on, over the embedded Kafka and without it; when all is
// counted, it still can be started again.
func TestGoesOnAfterAnInterrupt(t *testing.T) {
	bothWays(t, func(t *testing.T, flags ...string) {
		dir := filepath.Join(t.TempDir(), "wc")
		args := append(flags, "-checkpoint", dir, "-batch", "500", "-every", "1", novel(t, 20_000))
		ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
		defer interrupt()
		out, errs := &watched{text: ": top words", then: interrupt}, &watched{}
		require.Equal(t, 1, run(ctx, args, nil, out, errs), errs.String())
		require.ErrorIs(t, ctx.Err(), context.Canceled, "it was interrupted, not given up")
		assert.Contains(t, errs.String(), "ended early: nothing is verified; start it again to go on")
		assert.Contains(t, out.String(), "checkpoint "+dir+": a fresh start\n")
		assert.NotContains(t, out.String(), "verified")

		var words string
		for i := range 2 {
			status, stdout, stderr := runIt(args, "")
			require.Zero(t, status, stderr)
			assert.Regexp(t, regexp.MustCompile(`(?m)^checkpoint \S+: recovered from epoch \d+, `), stdout)
			found := regexp.MustCompile(`verified: \d+ keys exact\n$`).FindString(stdout)
			require.NotEmpty(t, found, stdout)
			if i == 0 {
				words = found
			}
			assert.Equal(t, words, found)
		}
	})
}

// The program itself, killed with kill -9 at any time, again and again, and started
// again as it was.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	program, root := filepath.Join(dir, "wordcount"), filepath.Join(dir, "wc")
	text, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", text)
	args := []string{"-checkpoint", root, "-batch", "2000", "-interval", "10ms", "-every", "1000", novel(t, 60_000)}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	killed := 0
	for i := range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, program, args...)
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		require.NoError(t, cmd.Start())
		// The first ones also fall into the making of the folders.
		after := time.Duration(random.Int64N(int64(50+100*i))) * time.Millisecond
		kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		kill.Stop()
		cancel()
		if err == nil {
			require.Regexp(t, `verified: \d+ keys exact\n$`, out.String())
			t.Logf("killed %d times, then: %s", killed, strings.ReplaceAll(out.String(), "\n", "; "))
			require.Positive(t, killed)
			return
		}
		killed++
		require.Equal(t, -1, cmd.ProcessState.ExitCode(), "it was not killed, but failed: %s%s", out.String(), errs.String())
	}
	t.Fatal("it does not come to an end between kills")
}

// A second process on the same folder is refused while the first one runs.
func TestTwoAtATime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wc")
	in := novel(t, 50_000)
	ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
	defer interrupt()
	args := []string{"-checkpoint", dir, "-batch", "500", "-interval", "5ms", "-every", "1", in}
	second := make(chan string, 1)
	out := &watched{text: "top words", then: func() {
		status, _, errs := runIt(args, "")
		second <- fmt.Sprint(status, errs)
		interrupt()
	}}
	run(ctx, args, nil, out, &watched{})
	select {
	case said := <-second:
		assert.Regexp(t, `^1wordcount: the folder \S+\.kafka is in use by another process \(host \S+, process \d+\): wait for its end or stop it, or name another`, said)
	default:
		t.Fatal(out.String())
	}
}

// The text must be the one of the first start, and one that can be read again.
func TestCheckpointFaults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wc")
	status, _, errs := runIt([]string{"-checkpoint", dir, "-interval", "5ms", novel(t, 10)}, "")
	require.Zero(t, status, errs)
	status, out, errs := runIt([]string{"-checkpoint", dir, "-interval", "5ms", novel(t, 11)}, "")
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "name another -checkpoint folder")
	assert.NotContains(t, out, "verified")
	status, _, errs = runIt([]string{"-checkpoint", dir, "-"}, "a")
	assert.Equal(t, 2, status)
	assert.Contains(t, errs, "not the standard input")
}

// With a checkpoint a running topic is counted on from where the last run was
// interrupted.
func TestTopicGoesOn(t *testing.T) {
	broker, err := embedded.Start(embedded.Topic("in", 3))
	require.NoError(t, err)
	defer broker.Close()
	args := []string{"-brokers", broker.Addrs(), "-topic", "in", "-interval", "10ms", "-checkpoint", filepath.Join(t.TempDir(), "wc")}
	for i, want := range []struct{ lines, whence, top, records string }{
		{"to be or", "a fresh start", "all: top words: be 1, or 1, to 1\n", "records: 3 words of 1 lines"},
		{"not to be", "recovered from epoch ", "all: top words: be 2, to 2, not 1, or 1\n", "records: 3 words of 1 lines"},
	} {
		put(t, broker, "in", []byte(want.lines))
		ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
		defer interrupt()
		out := &watched{text: ": top words: ", then: interrupt}
		require.Zero(t, run(ctx, args, nil, out, &watched{}), "run %d: %s", i+1, out)
		assert.Contains(t, out.String(), want.whence)
		assert.Contains(t, out.String(), want.top)
		assert.Contains(t, out.String(), want.records)
	}
}
