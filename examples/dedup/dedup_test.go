package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

// kitFor runs the program's own job on a scripted input and a manual clock.
func kitFor(t *testing.T, remember time.Duration) (*milltest.Kit, *milltest.In[delivery]) {
	none := func(dstream.Batch, verdict) error { return nil }
	kit := milltest.New(t, time.Second, job(source.NewQueue[delivery](1), remember, outputs{none, none}))
	return kit, milltest.Input[delivery](kit, "deliveries")
}

// ids are the IDs that an output got, a string a batch.
func ids(kit *milltest.Kit, output string) []string {
	var got []string
	for _, batch := range milltest.Output[verdict](kit, output) {
		var in []string
		for _, v := range batch {
			in = append(in, v.ID)
		}
		got = append(got, strings.Join(in, " "))
	}
	return got
}

func TestFirstThroughOthersHeldBack(t *testing.T) {
	kit, in := kitFor(t, time.Hour)
	in.Batch(delivery{"a", "1"}, delivery{"b", "1"}, delivery{"a", "2"}).Batch(delivery{"b", "2"}, delivery{"c", "1"})
	kit.Tick(2)
	first := milltest.Output[verdict](kit, "first")
	assert.ElementsMatch(t, []verdict{
		{delivery{"a", "1"}, true, time.Unix(1, 0).UTC()}, {delivery{"b", "1"}, true, time.Unix(1, 0).UTC()},
	}, first[0])
	assert.Equal(t, []verdict{{delivery{"c", "1"}, true, time.Unix(2, 0).UTC()}}, first[1])
	repeated := milltest.Output[verdict](kit, "repeated")
	assert.Equal(t, []verdict{{delivery{"a", "2"}, false, time.Unix(1, 0).UTC()}}, repeated[0])
	assert.Equal(t, []verdict{{delivery{"b", "2"}, false, time.Unix(1, 0).UTC()}}, repeated[1])
}

// Forgotten when idle for longer than the time, and not before; nothing is given then.
func TestForgetting(t *testing.T) {
	kit, in := kitFor(t, 2*time.Second)
	in.Batch(delivery{ID: "a"}).Empty(1).Batch(delivery{ID: "a"}) // seconds 1 and 3: the second prolongs
	kit.Tick(5)
	assert.Contains(t, milltest.State[string, time.Time](kit, "seen"), "a", "idle for exactly the time")
	kit.Tick(1)
	assert.Empty(t, milltest.State[string, time.Time](kit, "seen"))
	in.Batch(delivery{ID: "a"})
	kit.Tick(1)
	assert.Equal(t, []string{"a", "", "", "", "", "", "a"}, ids(kit, "first"))
	assert.Equal(t, []string{"", "", "a", "", "", "", ""}, ids(kit, "repeated"))
}

// What is remembered outlives a loss of power after any batch.
func TestCrashesForgetNothing(t *testing.T) {
	kit, in := kitFor(t, 5*time.Second)
	kit.Checkpoint()
	in.Batches(script()...)
	for range script() {
		kit.Tick(1)
		kit.Crash()
	}
	kit.Tick(1)
	assertScript(t, kit)
}

func TestScript(t *testing.T) {
	kit, in := kitFor(t, 5*time.Second)
	in.Batches(script()...)
	kit.Tick(len(script()) + 1)
	assertScript(t, kit)
}

func assertScript(t *testing.T, kit *milltest.Kit) {
	first, repeated := milltest.Output[verdict](kit, "first"), milltest.Output[verdict](kit, "repeated")
	count := func(batches [][]verdict) (n []int, ids []string) {
		for _, batch := range batches {
			n = append(n, len(batch))
			for _, v := range batch {
				ids = append(ids, v.ID)
			}
		}
		return n, ids
	}
	n, of := count(first)
	assert.Equal(t, []int{2, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0}, n)
	assert.ElementsMatch(t, []string{"p1", "p2", "p3", "p4", "p1"}, of)
	n, of = count(repeated)
	assert.Equal(t, []int{0, 1, 0, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0}, n)
	assert.ElementsMatch(t, []string{"p1", "p2", "p2", "p4", "p3"}, of)
}

func TestADeliveryWithoutAnIDFailsTheRun(t *testing.T) {
	kit, in := kitFor(t, time.Second)
	in.Batch(delivery{"", "pay"})
	kit.Tick(1)
	require.ErrorIs(t, kit.Err(), errNoID)
}

// The program as a whole, on the real clock: it ends by itself.
func TestRun(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"-interval", "1ms", "-remember", "1h"}, &out, &errs), errs.String())
	assert.Contains(t, out.String(), "batch 1: p1 through: pay ann 10\n")
	assert.Equal(t, 4, strings.Count(out.String(), " through: "))
	assert.Contains(t, out.String(), "all 10 deliveries of 4 events judged\n")
	assert.Empty(t, errs.String())
}

// A second run on the same checkpoint has nothing left to do, and knows it.
func TestRunWithCheckpoint(t *testing.T) {
	args := []string{"-interval", "1ms", "-remember", "1h", "-checkpoint", t.TempDir()}
	for _, want := range []string{"10", "0"} {
		var out, errs bytes.Buffer
		require.Zero(t, run(t.Context(), args, &out, &errs), errs.String())
		assert.Contains(t, out.String(), "the script is over; "+want+" of its 10 deliveries came in this run\n")
	}
}

func TestRunEndedEarlyIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	assert.Equal(t, 1, run(ctx, nil, &out, &errs))
	assert.Contains(t, errs.String(), "0 of 10 deliveries")
	errs.Reset()
	assert.Equal(t, 1, run(ctx, []string{"-checkpoint", t.TempDir()}, &out, &errs))
	assert.Contains(t, errs.String(), "start again with the same -checkpoint")
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want int
	}{
		{[]string{"-h"}, 0}, {[]string{"-nope"}, 2}, {[]string{"file"}, 2}, {[]string{"-interval", "0"}, 2}, {[]string{"-remember", "-1s"}, 2},
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, tc.want, run(t.Context(), tc.args, &out, &errs), tc.args)
		assert.NotEmpty(t, out.String()+errs.String())
	}
}
