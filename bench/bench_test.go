package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"testing"
	"unsafe"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain lets the test program be the broker's process, as the command can.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "-serve" {
		if err := serve(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestMedianAndQuantile(t *testing.T) {
	assert.InDelta(t, 2, median([]float64{3, 1, 2}), 0)
	assert.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 0)
	assert.True(t, math.IsNaN(median(nil)))
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	assert.InDelta(t, 99, quantile(hundred, 0.99), 0)
	assert.InDelta(t, 1, quantile(hundred, 0), 0)
	assert.InDelta(t, 100, quantile(hundred, 1), 0)
	assert.InDelta(t, 0.6235, round(0.62349), 1e-9)
	assert.InDelta(t, 1235, round(1234.6), 0)
}

// TestKeys: all keys differ, and no two batches share the bytes of a key.
func TestKeys(t *testing.T) {
	d := newData(options{}, 1000, 500)
	seen := map[string]bool{}
	for _, k := range d.all().keys {
		assert.Len(t, k, keySize)
		seen[k] = true
	}
	assert.Len(t, seen, 1000)
	at := map[*byte]bool{}
	for range 2 {
		for _, k := range d.next().keys {
			assert.True(t, seen[k])
			assert.False(t, at[unsafe.StringData(k)])
			at[unsafe.StringData(k)] = true
		}
	}
	assert.Len(t, at, 1000)
}

// TestSidesAgree: every side computes the same sums, or its figure means nothing.
func TestSidesAgree(t *testing.T) {
	fill := newData(options{}, 200, 500)
	bare, sharded := newBareMap(fill), newShardedMap(fill)
	ours, err := newUpdater(fill)
	require.NoError(t, err)
	// Our sides are filled by a record of each key, so their sums are one higher.
	job, err := newEngine(fill, 2)
	require.NoError(t, err)
	step, err := newStepper(0)
	require.NoError(t, err)
	require.NoError(t, step.step(fill.all()))
	for range 3 {
		in := fill.next()
		require.NoError(t, bare.batch(in))
		require.NoError(t, sharded.batch(in))
		require.NoError(t, ours.batch(in))
		require.NoError(t, job.batch(in))
		require.NoError(t, step.step(in))
		got := slices.Collect(ours.last.Mapped.All())
		require.Len(t, got, in.len())
		for i, o := range bare.out {
			require.Equal(t, output{o.key, o.sum + 1}, got[i])
		}
		stepped, err := rdd.Collect(context.Background(), step.state.Mapped())
		require.NoError(t, err)
		require.Equal(t, got, stepped)
		require.ElementsMatch(t, got, slices.Concat(job.out...))
		assert.Len(t, bare.out, in.len())
		assert.Equal(t, in.len(), len(sharded.owners[0].out)+len(sharded.owners[1].out))
	}
	all := map[string]int64{}
	for i := range sharded.owners {
		assert.NotEmpty(t, sharded.owners[i].m)
		for k, v := range sharded.owners[i].m {
			all[k] = v
		}
	}
	assert.Equal(t, bare.m, all)
	require.NoError(t, job.close())
}

// TestOperatorsAgree: the sides of ReduceByKey, of the windows and of the states give the same results.
func TestOperatorsAgree(t *testing.T) {
	d := newData(options{}, 50, 100)
	loop := newBareReduce()
	job, err := newReduce()
	require.NoError(t, err)
	inverse, err := newWindow(true, 3*interval)
	require.NoError(t, err)
	plain, err := newWindow(false, 3*interval)
	require.NoError(t, err)
	for range 8 {
		in := d.next()
		for _, s := range []side{loop, job, inverse, plain} {
			require.NoError(t, s.batch(in))
		}
		require.ElementsMatch(t, loop.out, job.out[0])
		require.ElementsMatch(t, plain.out[0], inverse.out[0])
	}
	records := int64(0)
	for _, kv := range plain.out[0] {
		records += kv.Value
	}
	require.EqualValues(t, 3*d.perBatch, records, "of three batches")
	for _, j := range []*pairJob{job, inverse, plain} {
		require.NoError(t, j.close())
	}
	got := addAll([]int64{1, 2}, dstream.Some(int64(3)))
	require.Equal(t, dstream.Some(int64(6)), got)
}

// TestJudge: the median process decides, the range and both sides' numbers are told, idle cores make a two-core run void.
func TestJudge(t *testing.T) {
	process := func(ours, base, cores float64) sample {
		return sample{
			Ours: []cost{{Wall: ours, CPU: ours * cores}, {Wall: ours, CPU: ours * cores}, {Wall: 1000 * ours, CPU: 1000 * ours}},
			Base: []cost{{Wall: base, CPU: base * cores}},
		}
	}
	b := &bench{name: "x", ratio: "ratio_to_x", target: 0.7, cores: 2}
	line := b.judge([]sample{process(50, 100, 1.9), process(60, 100, 1.9), process(200, 100, 1.9)}, options{})
	assert.InDelta(t, 0.6, line["ratio_to_x"], 1e-9)
	assert.Equal(t, true, line["met"])
	assert.Equal(t, false, line["void"])
	assert.Equal(t, []float64{0.5, 2}, line["range"])
	assert.Equal(t, "wall", line["judged_on"])
	assert.InDelta(t, 100, line["base_ns_wall"], 1e-9)

	text, err := b.format(line)
	require.NoError(t, err)
	assert.True(t, bytes.HasPrefix(text, []byte(`{"bench":"x","ratio_to_x":0.6,"target":0.7,"met":true,"void":false,`)), string(text))
	assert.True(t, json.Valid(text))

	idle := b.judge([]sample{process(50, 100, 1.5)}, options{})
	assert.Equal(t, true, idle["void"])

	missed := (&bench{ratio: "r", target: 0.7}).judge([]sample{process(80, 100, 1)}, options{})
	assert.Equal(t, false, missed["met"])
	assert.Equal(t, "cpu", missed["judged_on"])
	assert.NotContains(t, missed, "void")

	read := (&bench{ratio: "r"}).judge([]sample{process(80, 100, 1)}, options{})
	assert.NotContains(t, read, "met")
	assert.NotContains(t, read, "target")

	named := (&bench{ratio: "bytes", target: 80}).judge([]sample{{Figures: map[string]float64{"ratio": 70, "keys": 5}}}, options{})
	assert.InDelta(t, 70, named["bytes"], 0)
	assert.InDelta(t, 5, named["keys"], 0)
	assert.NotContains(t, named, "ratio")
}

// TestEveryBench runs each benchmark once on tiny data, in this process.
func TestEveryBench(t *testing.T) {
	for _, b := range benches {
		t.Run(b.name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, run(&out, b.name, true, options{quick: true, runs: 2}))
			var s sample
			require.NoError(t, json.Unmarshal(out.Bytes(), &s))
			line := b.judge([]sample{s}, options{})
			assert.Greater(t, line[b.ratio], 0.0)
			assert.Equal(t, b.target == 0, line["met"] == nil)
		})
	}
	require.ErrorContains(t, run(nil, "typo", true, options{}), `"typo"`)
}

// TestTables prints every table of the document, on tiny data.
func TestTables(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, tables(&out, options{quick: true}))
	for _, want := range []string{"| 2000 | 100 % | 10 |", "| 4 partitions become 8 |", "| reads of state and documents in 100 batches | 0 |",
		"| looks at the run's own owner file in 100 batches | 100 |", "| folder listings in 100 batches | 0 |"} {
		assert.Contains(t, out.String(), want)
	}
}

// The resident peak is this process's own, not that of the one which started it.
func TestPeakResident(t *testing.T) {
	const size, env = 96 << 20, "STATEMILL_BENCH_PEAK"
	before, ok := peakResident()
	if !ok {
		t.Skip("the system does not tell")
	}
	block := make([]byte, size)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	after, _ := peakResident()
	require.Positive(t, block[0])
	if os.Getenv(env) != "" {
		fmt.Println("peaks", before, after)
		return
	}
	child := exec.Command(os.Args[0], "-test.run", "^TestPeakResident$")
	child.Env = append(os.Environ(), env+"=1")
	text, err := child.CombinedOutput()
	require.NoError(t, err, "%s", text)
	_, err = fmt.Sscanf(string(text), "peaks %d %d", &before, &after)
	require.NoError(t, err, "%s", text)
	require.Less(t, before, int64(size), "of the child, before it took as much")
	require.Greater(t, after, int64(size))
}
