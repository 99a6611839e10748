package milltool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/vfs"
)

// wordProgram names the variable that makes this test binary a program of Main with the word job: its value is the step that
// counts rise by. The file poem.txt lies in the working folder.
const wordProgram = "STATEMILL_TEST_WORDS"

func wordMain() {
	step, err := strconv.Atoi(os.Getenv(wordProgram))
	if err != nil {
		panic(err)
	}
	var printed int
	Main(wordJob(vfs.Disk(), step, &printed), dstream.WithMaxRecordsPerBatch(5))
	panic("Main has returned")
}

// program runs the program in a folder, as a shell does.
func program(t *testing.T, dir string, step int, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), fmt.Sprint(wordProgram, "=", step))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// lines parses JSON, one document a line.
func lines[T any](t *testing.T, out string) (all []T) {
	t.Helper()
	for line := range strings.Lines(out) {
		var v T
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&v), line)
		all = append(all, v)
	}
	return all
}

// TestMainProgram: a program of Main, as a process of its own, on the root of its job: every command, exit codes, JSON.
func TestMainProgram(t *testing.T) {
	dir := t.TempDir()
	words := strings.Fields(poem)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "poem.txt"), []byte(strings.Join(words, "\n")+"\n"), 0o644))
	counts := map[string]int{}
	for _, w := range words {
		counts[w]++
	}
	t.Chdir(dir)
	var printed int
	require.NoError(t, dstream.Run(t.Context(), time.Millisecond, wordJob(vfs.Disk(), 1, &printed),
		dstream.WithCheckpoint("ckpt"), dstream.WithMaxRecordsPerBatch(5), dstream.WithStopWhenDone()))
	run := func(want int, line string) string {
		t.Helper()
		out, errs, code := program(t, dir, 1, split(line)...)
		require.Equal(t, want, code, "%s: %s%s", line, out, errs)
		return out
	}

	versions := lines[versionRow](t, run(ExitOK, "versions ckpt -json"))
	newest := versions[len(versions)-1].Version
	require.GreaterOrEqual(t, newest, uint64(len(words)/5))
	in := lines[inspection](t, run(ExitOK, "inspect ckpt -json"))[0]
	require.Equal(t, newest, in.Newest.Version)
	require.Equal(t, "free", in.Lock.State)
	dump := map[string]string{}
	for _, r := range lines[dumpRow](t, run(ExitOK, "dump ckpt counts -json")) {
		dump[string(r.Key)] = string(r.State)
	}
	require.Len(t, dump, len(counts))
	for w, n := range counts {
		require.Equal(t, fmt.Sprint(n), dump[strconv.Quote(w)], w)
	}
	require.Equal(t, fmt.Sprint(counts["the"]), string(lines[getResult](t, run(ExitOK, "get ckpt counts the -json"))[0].State))
	require.Empty(t, run(ExitFailure, "get ckpt counts zebra -json"))
	require.NotEmpty(t, lines[diffRow](t, run(ExitOK, fmt.Sprint("diff -json ckpt counts 1 ", newest))))
	history := lines[historyRow](t, run(ExitOK, "history ckpt counts the -json"))
	require.Equal(t, fmt.Sprint(counts["the"]), string(history[len(history)-1].New))
	require.Equal(t, verdict{Level: "verdict", OK: true, Oldest: 1, Newest: newest, Files: in.files(), Bytes: in.bytes()},
		lines[verdict](t, run(ExitOK, "verify ckpt -json"))[0])
	require.Equal(t, "nothing to repair\n", run(ExitOK, "repair ckpt"))

	for n := range newest {
		r := lines[replayResult](t, run(ExitOK, fmt.Sprint("replay ckpt -json -limit 0 ", n+1)))[0]
		require.True(t, r.Same)
		require.Equal(t, "totals", r.Outputs[0].Name)
		require.Len(t, r.Outputs[0].Rows, min(5, len(words)-5*int(n)))
	}
	require.Contains(t, run(ExitOK, "replay ckpt 2"), "operator counts: version 2 came out as it was committed\n")
	out, errs, code := program(t, dir, 10, "replay", "ckpt", "2", "-json")
	require.Equal(t, ExitFailure, code, errs)
	other := lines[replayResult](t, out)[0]
	require.False(t, other.Same)
	require.NotEmpty(t, other.Operators[0].Differences)
	run(ExitFailure, "replay ckpt 99")
	run(ExitUsage, "replay ckpt")

	fork := lines[forkResult](t, run(ExitOK, "fork ckpt new -json -version 2"))[0]
	require.Equal(t, uint64(2), fork.Version)
	rescaled := lines[rescaleResult](t, run(ExitOK, "rescale ckpt counts=3 -json"))[0]
	require.Equal(t, newest+1, rescaled.Version)
	require.Equal(t, []rescaledOperator{{Name: "counts", From: 2, To: 3, Layout: 1, Keys: int64(len(counts))}}, rescaled.Operators)
	run(ExitOK, "verify ckpt")
	run(ExitFailure, fmt.Sprint("replay ckpt ", newest+1))

	name := filepath.Base(os.Args[0])
	require.Contains(t, run(ExitOK, "help"), "usage: "+name+" COMMAND")
	require.Contains(t, run(ExitOK, "help"), "\n  replay    ")
	require.Contains(t, run(ExitOK, "replay -h"), "usage: "+name+" replay DIR N")
	for _, line := range []string{"", "bogus", "get ckpt", "get ckpt counts the -nope"} {
		out, errs, code := program(t, dir, 1, split(line)...)
		require.Equal(t, ExitUsage, code, line)
		require.Empty(t, out)
		require.NotEmpty(t, errs)
	}
	run(ExitFailure, "versions nowhere")
}

// files and bytes are what verify reads of a root that has no leftovers.
func (in *inspection) files() (n int) {
	for _, f := range in.Files {
		n += f.Files
	}
	return n
}

func (in *inspection) bytes() (n int64) {
	for _, f := range in.Files {
		n += f.Bytes
	}
	return n
}

// TestReplayElsewhere: a program without a job says where replay is.
func TestReplayElsewhere(t *testing.T) {
	for _, args := range [][]string{{"replay", "ckpt", "3"}, {"help", "replay"}} {
		_, errs, code := runEnv(t, Env{}, args...)
		require.Equal(t, ExitUsage, code)
		require.Contains(t, errs, "a program that calls milltool.Main with its job has it")
	}
	require.Equal(t, ExitOK, Run(context.Background(), Env{Args: []string{"help", "replay"}, Replay: noReplay}))
}
