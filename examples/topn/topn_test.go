package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

// charts runs the program's own job over the batches, on a manual clock.
func charts(t *testing.T, n int, window time.Duration, batches [][]string) [][]count {
	show := func(dstream.Batch, []count) error { return nil }
	kit := milltest.New(t, time.Second, job(source.NewQueue[string](1), n, window, time.Second, show))
	milltest.Input[string](kit, "searches").Batches(batches...)
	kit.Tick(len(batches))
	return milltest.Output[count](kit, "chart")
}

func TestChartsOfAWindow(t *testing.T) {
	got := charts(t, 2, 2*time.Second, [][]string{{"a", "b", "b"}, {"c", "c", "c", "a"}, nil, {"b"}, nil, nil})
	assert.Equal(t, [][]count{
		{{Key: "b", Value: 2}, {Key: "a", Value: 1}},
		{{Key: "c", Value: 3}, {Key: "a", Value: 2}}, // b has 2 as well and comes later in the alphabet
		{{Key: "c", Value: 3}, {Key: "a", Value: 1}},
		{{Key: "b", Value: 1}},
		{{Key: "b", Value: 1}},
		{},
	}, got)
}

func TestScript(t *testing.T) {
	assertScript(t, charts(t, 3, 4*time.Second, append(script(), make([][]string, 4)...)))
}

// The window outlives a loss of power after any batch.
func TestCrashesKeepTheWindow(t *testing.T) {
	show := func(dstream.Batch, []count) error { return nil }
	kit := milltest.New(t, time.Second, job(source.NewQueue[string](1), 3, 4*time.Second, time.Second, show))
	kit.Checkpoint()
	batches := append(script(), make([][]string, 4)...)
	milltest.Input[string](kit, "searches").Batches(batches...)
	for i := range batches {
		if i > 0 {
			kit.Crash()
		}
		kit.Tick(1)
	}
	assertScript(t, milltest.Output[count](kit, "chart"))
}

func assertScript(t *testing.T, all [][]count) {
	var lines []string
	var before []count
	for i, chart := range all {
		lines = append(lines, line(dstream.Batch{Epoch: uint64(i + 1)}, before, chart))
		before = chart
	}
	assert.Equal(t, []string{
		"batch  1: go* 2, rust* 1, zig* 1",
		"batch  2: go 3, zig+ 2, java* 1",
		"batch  3: rust* 4, go- 3, zig- 2",
		"batch  4: rust 5, zig+ 5, go- 3",
		"batch  5: rust 4, zig 4, ada* 1",
		"batch  6: rust 4, zig 4, ada 3",
		"batch  7: zig+ 4, ada+ 3, go* 3",
		"batch  8: ada+ 5, go+ 4, zig- 1",
		"batch  9: ada 5, go 4, java* 1",
		"batch 10: go+ 4, ada- 3, java 1",
		"batch 11: ada+ 2, go- 1, java 1",
		"batch 12: java+ 1",
		"batch 13: nothing",
	}, lines)
}

// Every chart is the first places of all counts of its window, sorted.
func TestChartsAgreeWithSorting(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		batches := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(strings.Fields("a b c d e f")), 0, 8), 1, 8).Draw(rt, "batches")
		n, length := rapid.IntRange(1, 4).Draw(rt, "n"), rapid.IntRange(1, 4).Draw(rt, "window")
		got := charts(t, n, time.Duration(length)*time.Second, batches)
		for i := range batches {
			totals := map[string]int{}
			for _, batch := range batches[max(0, i+1-length) : i+1] {
				for _, term := range batch {
					totals[term]++
				}
			}
			want := []count{}
			for term, total := range totals {
				want = append(want, dstream.KV(term, total))
			}
			slices.SortFunc(want, func(a, b count) int { return cmp.Or(b.Value-a.Value, cmp.Compare(a.Key, b.Key)) })
			if want = want[:min(n, len(want))]; !slices.Equal(want, got[i]) {
				rt.Fatalf("batch %d: %v, want %v", i+1, got[i], want)
			}
		}
	})
}

// The program as a whole, on the real clock: it ends by itself.
func TestRun(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"-interval", "20ms"}, &out, &errs), errs.String())
	assert.Contains(t, out.String(), "batch  1: go* 2, rust* 1, zig* 1\n")
	assert.Contains(t, out.String(), "every search has left the window again\n")
	assert.Empty(t, errs.String())
}

// A second run on the same checkpoint finds the window empty, makes one chart of it and ends.
func TestRunWithCheckpoint(t *testing.T) {
	args := []string{"-interval", "20ms", "-checkpoint", t.TempDir()}
	for _, n := range []string{"13", "1"} {
		var out, errs bytes.Buffer
		require.Zero(t, run(t.Context(), args, &out, &errs), errs.String())
		assert.Contains(t, out.String(), "the window has run empty; this run made "+n+" charts\n")
	}
}

func TestRunEndedEarlyIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	assert.Equal(t, 1, run(ctx, nil, &out, &errs))
	assert.Contains(t, errs.String(), "ended after 0 of 13 batches")
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		args string
		want int
	}{
		{"-h", 0}, {"-nope", 2}, {"file", 2}, {"-interval 0", 2}, {"-n 0", 2}, {"-window -1s", 2}, {"-window 150ms", 2},
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, tc.want, run(t.Context(), strings.Fields(tc.args), &out, &errs), tc.args)
		assert.NotEmpty(t, fmt.Sprint(out.String(), errs.String()))
	}
}
