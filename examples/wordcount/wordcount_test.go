package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

// book writes a folder of small texts and gives its name.
func book(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "part", ".hidden"), 0o755))
	for name, text := range map[string]string{
		"one.txt":             strings.Repeat("the state of the state\n", 200),
		"part/two.txt":        "the end", // no line end
		"part/empty.txt":      "",
		"part/.hidden/no.txt": "hidden hidden",
		"part/.no":            "hidden",
		"binary":              "the\x00the",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

func runIt(args []string, stdin string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

func TestFilesAreCountedAndVerified(t *testing.T) {
	status, out, errs := runIt([]string{"-batch", "512", "-interval", "1ms", "-every", "2", "-partitions", "3", book(t)}, "")
	require.Zero(t, status, errs)
	assert.Contains(t, out, "counting the words of 3 files")
	assert.Contains(t, out, "records: 1002 words of 201 lines")
	assert.Contains(t, out, "keys: 4\n")
	assert.Contains(t, out, "verified: 4 keys exact\n")
	assert.Regexp(t, regexp.MustCompile(`(?m)^records/s: \d+$`), out)
	assert.Regexp(t, regexp.MustCompile(`(?m)^batch p50: \S+ p99: \S+$`), out)
	assert.Regexp(t, regexp.MustCompile(`(?m)^batch 2: top words: (the|state) \d+, `), out)
	for _, text := range []string{out, errs} { // piped output is plain
		assert.NotContains(t, text, "\r")
		assert.NotContains(t, text, "\x1b")
	}
	assert.Regexp(t, regexp.MustCompile(`batch \d+: \d+ lines, \d+ words, \d+ keys`), errs)
}

func TestStandardInput(t *testing.T) {
	status, out, errs := runIt([]string{"-interval", "1ms", "-"}, "to be or\nnot to be")
	require.Zero(t, status, errs)
	assert.Contains(t, out, "records: 6 words of 2 lines")
	assert.Contains(t, out, "verified: 4 keys exact\n")
}

func TestEmptyStandardInput(t *testing.T) {
	status, out, errs := runIt([]string{"-interval", "1ms", "-"}, "")
	require.Zero(t, status, errs)
	assert.Contains(t, out, "verified: 0 keys exact\n")
}

// A wrong total ends the program with 1.
func TestMismatchIsExitOne(t *testing.T) {
	dir := book(t)
	text, err := openText(context.Background(), []string{dir}, nil, 1<<20)
	require.NoError(t, err)
	honest := text.plain
	text.plain = func() (*plainCount, error) {
		p, err := honest()
		*p.counts["the"]++
		return p, err
	}
	var out, errs bytes.Buffer
	err = count(context.Background(), options{partitions: 2, workers: 2, interval: time.Millisecond, every: 1, args: []string{dir}}, text, &out, &errs)
	assert.ErrorContains(t, err, `MISMATCH: 1 keys differ from the independent count: "the" is 401, want 402`)
	assert.NotContains(t, out.String(), "verified")
}

func TestUsage(t *testing.T) {
	status, help, errs := runIt([]string{"-h"}, "")
	assert.Zero(t, status)
	assert.Empty(t, errs)
	for _, word := range []string{"usage:", "verified:", "Exit status", "-partitions", "standard input"} {
		assert.Contains(t, help, word)
	}
	for want, all := range map[int][][]string{
		2: {{"-nope"}, {"-partitions", "0"}, {"-batch", "0", "x"}, {"-every", "0"}},
		1: {{filepath.Join(t.TempDir(), "absent")}, {t.TempDir()}},
	} {
		for _, args := range all {
			status, out, errs := runIt(args, "")
			assert.Equal(t, want, status, args)
			assert.NotEmpty(t, errs, args)
			assert.NotContains(t, out, "verified", args)
		}
	}
}

func TestEndedEarlyIsNotVerified(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	assert.Equal(t, 1, run(ctx, []string{book(t)}, nil, &out, &errs))
	assert.NotContains(t, out.String(), "verified")
}

// The job itself, unchanged, on scripted lines.
func TestJob(t *testing.T) {
	r := &results{n: 2, every: 1, last: func() bool { return false }}
	kit := milltest.New(t, time.Second, job(source.NewQueue[string](1), 3, r))
	kit.ReplaceOutput("top words")
	milltest.Input[string](kit, "text").Batch("a b a").Batch("b c")
	kit.Tick(2)
	assert.Equal(t, map[string]int64{"a": 2, "b": 2, "c": 1}, milltest.State[string, int64](kit, "counts"))
	out := milltest.Output[wordTotal](kit, "top words")
	assert.ElementsMatch(t, []wordTotal{{Key: "a", Value: 1}, {Key: "b", Value: 1}, {Key: "a", Value: 2}}, out[0])
	assert.ElementsMatch(t, []wordTotal{{Key: "b", Value: 2}, {Key: "c", Value: 1}}, out[1])
}
