package oracle

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is Spark's mapWithState as the rules of the recorded cases have it, in
// the plainest way: it makes new cases of the same kinds.
type model struct {
	cfg   Config
	state map[string]cell
}

type cell struct{ value, time int64 }

func iae(text string) any {
	return map[string]string{"error": "java.lang.IllegalArgumentException", "message": "requirement failed: " + text}
}

func notSet() any {
	return map[string]string{"error": "java.util.NoSuchElementException", "message": "State is not set"}
}

func seen(c cell, ok bool) map[string]any {
	if !ok {
		return map[string]any{"exists": false, "getOption": nil, "get": notSet()}
	}
	return map[string]any{"exists": true, "getOption": c.value, "get": c.value}
}

// record gives what a record emits (nil: nothing), or the text of an exception.
func (m *model) record(key, text string, now int64) (out []any, thrown string) {
	op, a, err := parseOp(text)
	if err != nil {
		panic(err)
	}
	c, ok := m.state[key]
	var option any
	if ok {
		option = c.value
	}
	put := func(v int64) { m.state[key] = cell{v, now} }
	touch := func() {
		if ok && m.cfg.TimeoutMs != nil {
			put(c.value)
		}
	}
	remove := func() { delete(m.state, key) }
	gone := seen(cell{}, false)
	switch op {
	case "inc", "qinc":
		put(c.value + a[0])
		if op == "qinc" {
			return nil, ""
		}
		return []any{key, op, c.value + a[0]}, ""
	case "set", "updget":
		put(a[0])
		return []any{key, op, a[0]}, ""
	case "upd2":
		put(a[1])
		return []any{key, op, a[1]}, ""
	case "del":
		remove()
		return []any{key, op, option}, ""
	case "rm":
		remove()
		return []any{key, op}, ""
	case "rmget", "updrm":
		remove()
		return []any{key, op, gone}, ""
	case "rmupd":
		remove()
		return []any{key, op, iae("Cannot update the state after it has been removed")}, ""
	case "rmrm":
		remove()
		return []any{key, op, iae("Cannot remove the state that has already been removed")}, ""
	case "throw":
		return nil, "boom " + key
	}
	touch()
	switch op {
	case "get":
		return []any{key, op, option}, ""
	case "time":
		return []any{key, op, now}, ""
	case "probe":
		p := seen(c, ok)
		p["isTimingOut"] = false
		return []any{key, op, p}, ""
	}
	return nil, "" // noop
}

func (m *model) timeout(key string, now int64) (out []any, thrown string) {
	v := m.state[key].value
	delete(m.state, key)
	switch m.cfg.OnTimeout {
	case "silent":
		return nil, ""
	case "throw":
		return nil, "boom on timeout " + key
	case "probe":
		return []any{key, "timeout", v, map[string]any{
			"exists": true, "isTimingOut": true, "getOption": v, "time": now,
			"update": iae("Cannot update the state that is timing out"),
			"remove": iae("Cannot remove the state that is timing out"),
		}}, ""
	}
	return []any{key, "timeout", v}, ""
}

// batch gives the outputs of one batch, or the text of an exception.
func (m *model) batch(records [][2]string, now int64) (outs []any, thrown string) {
	outs = []any{}
	add := func(out []any, text string) bool {
		if out != nil {
			outs = append(outs, out)
		}
		thrown = text
		return text == ""
	}
	for _, r := range records {
		if !add(m.record(r[0], r[1], now)) {
			return nil, thrown
		}
	}
	every := 10 * m.cfg.BatchIntervalMs
	if m.cfg.CheckpointIntervalMs != nil {
		every = *m.cfg.CheckpointIntervalMs
	}
	if m.cfg.TimeoutMs == nil || now%every != 0 {
		return outs, ""
	}
	for key, c := range m.state {
		if c.time < now-*m.cfg.TimeoutMs && !add(m.timeout(key, now)) {
			return nil, thrown
		}
	}
	return outs, ""
}

// recorded plays batches (nil: no RDD) through the model and writes the result
// as a case file has it.
func recorded(t interface{ Fatal(...any) }, cfg Config, initial [][2]any, batches [][][2]string) *Case {
	m := &model{cfg: cfg, state: map[string]cell{}}
	for _, p := range initial {
		m.state[p[0].(string)] = cell{p[1].(int64), cfg.BatchIntervalMs}
	}
	outputs, snapshots, times, errs := []any{}, []any{}, []any{}, []any{}
	failed := ""
	for i, records := range batches {
		now := int64(i+1) * cfg.BatchIntervalMs
		var outs []any
		if failed == "" {
			outs, failed = m.batch(records, now)
		}
		if failed != "" {
			outputs, snapshots, times = append(outputs, nil), append(snapshots, nil), append(times, nil)
			errs = append(errs, "java.lang.IllegalStateException: "+failed)
			continue
		}
		snap, time := []any{}, []any{}
		for k, c := range m.state {
			snap, time = append(snap, []any{k, c.value}), append(time, []any{k, c.value, c.time})
		}
		outputs, snapshots, times, errs = append(outputs, outs), append(snapshots, snap), append(times, time), append(errs, nil)
	}
	file := map[string]any{
		"name": "made", "op": "mapWithState", "config": cfg, "batches": batches,
		"outputs": outputs, "snapshots": snapshots, "stateTimes": times, "errors": errs,
	}
	b, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &Case{}
	if err := json.Unmarshal(b, c); err != nil {
		t.Fatal(err)
	}
	c.Config.InitialState = nil
	if initial != nil {
		c.Config.InitialState = []Row{}
		for _, p := range initial {
			row, _ := json.Marshal(p)
			c.Config.InitialState = append(c.Config.InitialState, row)
		}
	}
	return c
}

// probe stands in for the test of a case, to see whether it fails.
type probeTB struct {
	testing.TB
	failed, skipped []string
	cleanups        []func()
}

func (f *probeTB) Helper()                      {}
func (f *probeTB) Cleanup(c func())             { f.cleanups = append(f.cleanups, c) }
func (f *probeTB) Errorf(s string, args ...any) { f.failed = append(f.failed, fmt.Sprintf(s, args...)) }
func (f *probeTB) Fatalf(s string, args ...any) { f.Errorf(s, args...); runtime.Goexit() }
func (f *probeTB) Fatal(args ...any)            { f.Fatalf("%s", fmt.Sprint(args...)) }
func (f *probeTB) Skip(args ...any) {
	f.skipped = append(f.skipped, fmt.Sprint(args...))
	runtime.Goexit()
}

func tryReplay(c *Case) *probeTB {
	f := &probeTB{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, c := range slices.Backward(f.cleanups) {
				c()
			}
		}()
		Replay(f, c)
	}()
	<-done
	return f
}

func pick[T any](v T) *T { return &v }

// New cases of the recorded kinds, with every record value and every setting.
func TestMadeCases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := rapid.SampledFrom([]int64{200, 1000, 2000}).Draw(t, "interval")
		cfg := Config{
			BatchIntervalMs:     interval,
			Partitions:          rapid.IntRange(1, 5).Draw(t, "partitions"),
			InputPartitions:     rapid.IntRange(0, 1).Draw(t, "input partitions"),
			DeltaChainThreshold: rapid.SampledFrom([]int{1, 3, 20}).Draw(t, "threshold"),
			OnTimeout:           rapid.SampledFrom([]string{"emit", "emit", "silent", "probe", "probe", "throw"}).Draw(t, "on timeout"),
		}
		if rapid.Bool().Draw(t, "has timeout") {
			cfg.TimeoutMs = pick(rapid.Int64Range(1, 12).Draw(t, "timeout") * interval / 2)
		}
		if rapid.Bool().Draw(t, "has checkpoint interval") {
			cfg.CheckpointIntervalMs = pick(rapid.Int64Range(1, 6).Draw(t, "checkpoint") * interval)
		}
		var initial [][2]any
		if rapid.Bool().Draw(t, "has initial state") {
			initial = [][2]any{}
			for _, k := range rapid.SliceOfN(rapid.SampledFrom([]string{"k0", "k1", "z"}), 0, 4).Draw(t, "initial") {
				initial = append(initial, [2]any{k, int64(len(initial))})
			}
		}
		seed := rapid.Uint64().Draw(t, "seed")
		rnd := rand.New(rand.NewPCG(seed, seed))
		ops := []string{"inc:1", "inc:2", "set:7", "qinc:3", "del", "rm", "get", "noop", "time", "probe",
			"updrm:3", "rmupd:9", "rmrm", "rmget", "updget:4", "upd2:1:2"}
		batches := make([][][2]string, rapid.IntRange(1, 25).Draw(t, "batches"))
		for i := range batches {
			if rnd.IntN(4) == 0 {
				continue // no RDD
			}
			batches[i] = [][2]string{}
			for range rnd.IntN(6) {
				op := ops[rnd.IntN(len(ops))]
				if rnd.IntN(200) == 0 {
					op = "throw"
				}
				batches[i] = append(batches[i], [2]string{fmt.Sprintf("k%d", rnd.IntN(6)), op})
			}
		}
		if got := tryReplay(recorded(t, cfg, initial, batches)); len(got.failed) > 0 {
			t.Fatalf("%s", strings.Join(got.failed, "\n"))
		}
	})
}

// A replay can fail: each recorded thing that is changed is found.
func TestAWrongRecordingIsFound(t *testing.T) {
	load := func(name string) *Case {
		cases, err := Load("testdata")
		require.NoError(t, err)
		i := slices.IndexFunc(cases, func(c *Case) bool { return c.Name == name })
		require.GreaterOrEqual(t, i, 0, name)
		return cases[i]
	}
	replace := func(raw json.RawMessage, from, to string) json.RawMessage {
		require.Contains(t, string(raw), from)
		return json.RawMessage(strings.Replace(string(raw), from, to, 1))
	}
	for name, change := range map[string]func() *Case{
		"output": func() *Case {
			c := load("mws_remove_a")
			c.Outputs = replace(c.Outputs, `"inc",1`, `"inc",2`)
			return c
		},
		"snapshot": func() *Case {
			c := load("mws_count_basic_a")
			c.Snapshots[0].List[0] = Row(`["a",99]`)
			return c
		},
		"state time": func() *Case {
			c := load("mws_timeout_touch_get_a")
			c.StateTimes[3].List = nil
			return c
		},
		"text of the exception": func() *Case {
			c := load("mws_throw_a")
			c.Errors[1] = pick("java.lang.IllegalStateException: boom c")
			return c
		},
		"no exception where one was": func() *Case {
			c := load("mws_throw_a")
			c.Batches[1].List = c.Batches[1].List[:1]
			return c
		},
		"exception where none was": func() *Case {
			c := load("mws_count_basic_a")
			c.Batches[1].List = append(c.Batches[1].List, Row(`["a","throw"]`))
			return c
		},
		"count": func() *Case {
			c := load("count_a")
			c.Outputs = replace(c.Outputs, "4", "5")
			return c
		},
		"partition of glom": func() *Case {
			c := load("glom_4_a")
			c.Config.InputPartitions = 3
			return c
		},
		"output that is missing": func() *Case {
			c := load("union_a")
			c.Outputs = replace(c.Outputs, "[", "[null,")
			return c
		},
		"state after a swap of the partitioner": func() *Case { // which is run in its lives only
			c := load("mws_repartition_a")
			c.StateTimes[9].List = nil
			return c
		},
		"unknown record value": func() *Case {
			c := load("mws_count_basic_a")
			c.Batches[0].List[0] = Row(`["a","fly"]`)
			return c
		},
		"unknown function": func() *Case {
			c := load("transform_a")
			c.Config.Function = "another"
			return c
		},
	} {
		got := tryReplay(change())
		assert.NotEmpty(t, got.failed, name)
		assert.Empty(t, got.skipped, name)
	}
	assert.Empty(t, tryReplay(load("mws_repartition_a")).failed)
	assert.Empty(t, tryReplay(load("mws_throw_a")).failed)
}

// Other cases of the stateless kinds: null batches, more partitions.
func TestMadeStatelessCases(t *testing.T) {
	for _, text := range []string{
		`{"op":"count","config":{"batchIntervalMs":200,"inputPartitions":3},"batches":[[1,2],null,[]],"outputs":[[2],null,[0]],"errors":[null,"x",null]}`,
		`{"op":"glom","config":{"batchIntervalMs":200,"inputPartitions":2},"batches":[[1,2,3],null],"outputs":[[[1],[2,3]],null]}`,
		`{"op":"reduce","config":{"batchIntervalMs":1000,"reduce":"max","inputPartitions":2},"batches":[[1,9,-3],null],"outputs":[[9],null]}`,
		`{"op":"reduceByKey","config":{"batchIntervalMs":1000,"partitions":3,"reduce":"min"},"batches":[[["a",1],["a",-1],["b",2]],null],"outputs":[[["a",-1],["b",2]],null]}`,
		`{"op":"union","config":{"batchIntervalMs":1000},"batches":[null,[1]],"batches2":[["x"],null],"outputs":[null,null]}`,
		`{"op":"repartition","config":{"batchIntervalMs":1000,"partitions":5},"batches":[[1,1,2],null],"outputs":[[2,1,1],null]}`,
		`{"op":"glomSizesAfterRepartition","config":{"batchIntervalMs":1000,"partitions":2},"batches":[[1,1,2],null],"outputs":[[0,3],null]}`,
		`{"op":"flatMapValues","config":{"batchIntervalMs":1000,"function":"v => [0..v mod 3)"},"batches":[[["a",5],["b",-1]],null],"outputs":[[["a",0],["a",1]],null]}`,
		`{"op":"mapValues","config":{"batchIntervalMs":1000,"function":"v*10+1"},"batches":[[["a",-1]],null],"outputs":[[["a",-9]],null]}`,
	} {
		c := &Case{}
		require.NoError(t, json.Unmarshal([]byte(text), c))
		c.Name = c.Op
		assert.Empty(t, tryReplay(c).failed, text)
	}
}
