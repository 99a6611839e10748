package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/milltest"
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

// bothWays runs the test over the embedded Kafka and without Kafka.
func bothWays(t *testing.T, test func(t *testing.T, flags ...string)) {
	t.Run("kafka", func(t *testing.T) { test(t, "-interval", "5ms") })
	t.Run("files", func(t *testing.T) { test(t, "-interval", "1ms", "-files") })
}

func TestFilesAreCountedAndVerified(t *testing.T) {
	bothWays(t, func(t *testing.T, flags ...string) {
		status, out, errs := runIt(append(flags, "-batch", "20", "-every", "2", "-partitions", "3", book(t)), "")
		require.Zero(t, status, errs)
		assert.Contains(t, out, " 3 files of ")
		assert.Contains(t, out, "records: 1002 words of 201 lines")
		assert.Contains(t, out, "keys: 4\n")
		assert.Contains(t, out, "all: top words: the 401, state 400, of 200, end 1\n")
		assert.Regexp(t, regexp.MustCompile(`verified: 4 keys exact\n$`), out)
		assert.Regexp(t, regexp.MustCompile(`(?m)^records/s: \d+$`), out)
		assert.Regexp(t, regexp.MustCompile(`(?m)^batch p50: \S+ p99: \S+$`), out)
		assert.Regexp(t, regexp.MustCompile(`(?m)^batch \d*[02468]: top words: (the|state) \d+, `), out)
		for _, text := range []string{out, errs} { // piped output is plain
			assert.NotContains(t, text, "\r")
			assert.NotContains(t, text, "\x1b")
		}
		assert.Regexp(t, regexp.MustCompile(`batch \d+: \d+ lines, \d+ words, \d+ keys`), errs)
	})
}

// Lines that are empty, end in CR LF, hold any bytes, or are larger than what a
// broker takes by default; a last one without an end.
func TestStandardInput(t *testing.T) {
	for name, c := range map[string]struct{ text, lines, keys string }{
		"words":       {"to be or\nnot to be", "6 words of 2 lines", "4"},
		"nothing":     {"", "0 words of 0 lines", "0"},
		"empty lines": {"\n\na\n\n", "1 words of 4 lines", "1"},
		"one line":    {"\n", "0 words of 1 lines", "0"},
		"any bytes":   {"a\r\n\xff\x00b\r\n \t\n", "2 words of 3 lines", "2"},
		"large":       {"a\n" + strings.Repeat("abc ", 3<<18) + "\na\n", "786434 words of 3 lines", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, flags ...string) {
				if name == "large" && flags[len(flags)-1] == "-files" {
					t.Skip("the source of lines has its own limit")
				}
				status, out, errs := runIt(append(flags, "-"), c.text)
				require.Zero(t, status, errs)
				assert.Contains(t, out, "records: "+c.lines)
				assert.Contains(t, out, "verified: "+c.keys+" keys exact\n")
			})
		})
	}
}

func TestFaultsOfTheText(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, "long")
	require.NoError(t, os.WriteFile(long, append([]byte("a\n"), bytes.Repeat([]byte{'x'}, maxLine+1)...), 0o644))
	status, out, errs := runIt([]string{long}, "")
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, long+": line 2 has more than 8388608 bytes")
	assert.NotContains(t, out, "verified")

	var stdout, stderr bytes.Buffer
	broken := io.MultiReader(strings.NewReader("a b\nc"), iotest.ErrReader(os.ErrClosed))
	assert.Equal(t, 1, run(t.Context(), []string{"-"}, broken, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "file already closed")
	assert.NotContains(t, stdout.String(), "verified")
}

// A wrong total ends the program with 1.
func TestMismatchIsExitOne(t *testing.T) {
	for _, files := range []bool{false, true} {
		text, err := openText(t.Context(), []string{book(t)}, nil)
		require.NoError(t, err)
		honest := text.plain
		text.plain = func() (*plainCount, error) {
			p, err := honest()
			*p.counts["the"]++
			return p, err
		}
		var out, errs bytes.Buffer
		o := options{partitions: 2, workers: 2, batch: 1000, interval: time.Millisecond, every: 1, files: files}
		err = countText(t.Context(), o, text, &out, &errs)
		assert.ErrorContains(t, err, `MISMATCH: 1 keys differ from the independent count: "the" is 401, want 402`)
		assert.NotContains(t, out.String(), "verified")
	}
}

func TestUsage(t *testing.T) {
	status, help, errs := runIt([]string{"-h"}, "")
	assert.Zero(t, status)
	assert.Empty(t, errs)
	for _, word := range []string{"usage:", "verified:", "Exit status", "-partitions", "standard input", "-brokers", "Ctrl-C", "at least once"} {
		assert.Contains(t, help, word)
	}
	absent := filepath.Join(t.TempDir(), "absent")
	for want, all := range map[int][][]string{
		2: {
			{"-nope"}, {"-partitions", "0"}, {"-batch", "0", "x"}, {"-every", "0"}, {"-interval", "0"},
			{"-topic", "t"}, {"-out", "t"}, {"-brokers", "b:1"}, {"-brokers", "", "-topic", "t"},
			{"-brokers", "b:1", "-topic", "t", "-out", "t"}, {"-brokers", "b:1", "-topic", "t", "file"},
			{"-brokers", "b:1", "-topic", "t", "-files"},
		},
		1: {{absent}, {"-files", absent}, {t.TempDir()}},
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
	bothWays(t, func(t *testing.T, flags ...string) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out, errs bytes.Buffer
		assert.Equal(t, 1, run(ctx, append(flags, book(t)), nil, &out, &errs))
		assert.Contains(t, errs.String(), "ended early")
		assert.NotContains(t, out.String(), "verified")
	})
}

// The job itself, unchanged, on scripted records: no broker is asked.
func TestJob(t *testing.T) {
	kit := milltest.New(t, time.Second, job(fromTopic([]string{"nowhere:1"}, "topic"), 3, &results{}))
	kit.ReplaceOutput("top words")
	kit.ReplaceOutput("totals")
	milltest.Input[kafka.Record](kit, "text").
		Batch(kafka.Record{Value: []byte("a b a")}, kafka.Record{Value: nil}, kafka.Record{Value: []byte{}}).
		Batch(kafka.Record{Key: []byte("k"), Value: []byte("b c")})
	kit.Tick(2)
	assert.Equal(t, map[string]int64{"a": 2, "b": 2, "c": 1}, milltest.State[string, int64](kit, "counts"))
	out := milltest.Output[wordTotal](kit, "top words")
	assert.ElementsMatch(t, []wordTotal{{Key: "a", Value: 1}, {Key: "b", Value: 1}, {Key: "a", Value: 2}}, out[0])
	assert.ElementsMatch(t, []wordTotal{{Key: "b", Value: 2}, {Key: "c", Value: 1}}, out[1])
}
