package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

// bench is the program's own job on scripted inputs and a manual clock.
type bench struct {
	*milltest.Kit
	orders  *milltest.In[order]
	changes *milltest.In[change]
}

func newBench(t *testing.T) *bench {
	kit := milltest.New(t, time.Second, job(source.NewQueue[order](1), source.NewQueue[change](1), names(), prices(),
		func(dstream.Batch, string, named) error { return nil }))
	return &bench{kit, milltest.Input[order](kit, "orders"), milltest.Input[change](kit, "changes")}
}

// lines are what the program prints, sorted within a batch.
func (k *bench) lines() []string {
	var all []string
	for i, batch := range milltest.Output[dstream.Pair[string, named]](k.Kit, "priced orders") {
		var lines []string
		for _, o := range batch {
			lines = append(lines, line(dstream.Batch{Epoch: uint64(i + 1)}, o.Key, o.Value))
		}
		slices.Sort(lines)
		all = append(all, lines...)
	}
	return all
}

func (k *bench) prices() map[string]int { return milltest.State[string, int](k.Kit, "prices") }

var want = []string{
	"batch 1: order 1: 3 apples at 0.50: 1.50",
	"batch 1: order 2: 1 pears at 0.70: 0.70",
	"batch 2: order 3: 2 apples at 0.60: 1.20",
	"batch 3: order 4: 10 plums: no price",
	"batch 4: order 5: 10 plums at 0.20: 2.00",
	"batch 4: order 6: 1 unknown product fi: no price",
	"batch 5: order 7: 2 unknown product fi at 0.90: 1.80",
	"batch 5: order 8: 4 pears at 0.70: 2.80",
	"batch 7: order 9: 1 pears: no price",
}

func TestScript(t *testing.T) {
	k := newBench(t)
	orders, changes := script()
	k.orders.Batches(orders...)
	k.changes.Batches(changes...)
	k.Tick(len(orders))
	assert.Equal(t, want, k.lines())
	assert.Equal(t, map[string]int{"ap": 60, "pl": 20, "fi": 90}, k.prices())
}

// The table of prices outlives a loss of power after any batch.
func TestCrashesKeepThePrices(t *testing.T) {
	k := newBench(t)
	k.Checkpoint()
	orders, changes := script()
	k.orders.Batches(orders...)
	k.changes.Batches(changes...)
	for range orders {
		k.Tick(1)
		k.Crash()
	}
	k.Tick(1)
	assert.Equal(t, want, k.lines())
	assert.Equal(t, map[string]int{"ap": 60, "pl": 20, "fi": 90}, k.prices())
}

// Of one batch, all changes hold before any order, and the last one counts.
func TestChangesComeFirst(t *testing.T) {
	k := newBench(t)
	k.orders.Batch(order{1, "ap", 1})
	k.changes.Batch(change{"ap", 10}, change{"ap", 20})
	k.Tick(1)
	assert.Equal(t, []string{"batch 1: order 1: 1 apples at 0.20: 0.20"}, k.lines())
}

func TestAPriceBelowZeroFailsTheRun(t *testing.T) {
	k := newBench(t)
	k.changes.Batch(change{"ap", -1})
	k.Tick(1)
	require.ErrorIs(t, k.Err(), errPrice)
	assert.Contains(t, k.Err().Error(), "ap")
}

// The program as a whole, on the real clock: it ends by itself.
func TestRun(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"-interval", "1ms"}, &out, &errs), errs.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	assert.ElementsMatch(t, append([]string{"all 9 orders joined"}, want...), lines)
	assert.Empty(t, errs.String())
}

// A second run on the same checkpoint has nothing left to do, and knows it.
func TestRunWithCheckpoint(t *testing.T) {
	args := []string{"-interval", "1ms", "-checkpoint", t.TempDir()}
	for _, n := range []string{"9", "0"} {
		var out, errs bytes.Buffer
		require.Zero(t, run(t.Context(), args, &out, &errs), errs.String())
		assert.Contains(t, out.String(), "the script is over; "+n+" of its 9 orders came in this run\n")
	}
}

func TestRunEndedEarlyIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	assert.Equal(t, 1, run(ctx, nil, &out, &errs))
	assert.Contains(t, errs.String(), "0 of 9 orders")
	errs.Reset()
	assert.Equal(t, 1, run(ctx, []string{"-checkpoint", t.TempDir()}, &out, &errs))
	assert.Contains(t, errs.String(), "start again with the same -checkpoint")
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]int{"-h": 0, "-nope": 2, "file": 2, "-interval 0": 2} {
		var out, errs bytes.Buffer
		assert.Equal(t, want, run(t.Context(), strings.Fields(args), &out, &errs), args)
		assert.NotEmpty(t, out.String()+errs.String())
	}
}
