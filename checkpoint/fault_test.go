package checkpoint

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// stride thins the loops out under the race detector, which they are not for.
var stride = map[bool]int{false: 1, true: 7}[invariants.Enabled]

// world is a root with the systems that its sinks write to.
type world struct {
	m medium
	b *board
	// force takes the root from whoever holds it.
	force bool
}

// job makes a run in the world, with two sinks.
func (w *world) job(in vfs.Injector, ops ...JobOperator) *job {
	j := newJob(w.m, in, ops...)
	j.cfg.Sinks = []sink.Unit{w.b.unit("a", in), w.b.unit("b", in)}
	if w.force {
		j.cfg.Takeover = TakeoverForce
	}
	return j
}

// script is a history whose every call may go wrong. It ends with the same
// number of batches each time.
type script struct {
	batches uint64
	// before prepares the root, without faults.
	before func(ctx context.Context, w *world) error
	// run is what goes wrong, and what is run again afterwards until it succeeds.
	run func(ctx context.Context, w *world, in vfs.Injector) error
	ops []JobOperator // of the reference

	state string // of the reference, once it was run
	rows  []string
}

func runJob(ctx context.Context, j *job, n uint64) error {
	if err := j.run(ctx, n); err != nil {
		return err
	}
	return j.close()
}

// wide makes the states of an operator of int64 struct states.
type wide struct{ Count int64 }

func widened(op JobOperator) JobOperator {
	op.State, op.StateCodec = schemaOf[wide](), schemaOf[wide]().Codec()
	op.Convert = func(codec.Schema) (func(dst, state []byte) ([]byte, error), error) {
		// The engine of the tests reads varints alone, so the bytes stay.
		return func(dst, state []byte) ([]byte, error) {
			if _, n := binary.Varint(state); n != len(state) {
				return nil, fmt.Errorf("state %x is no varint", state)
			}
			return append(dst, state...), nil
		}, nil
	}
	return op
}

var scripts = map[string]script{
	"fresh": {batches: 2, run: func(ctx context.Context, w *world, in vfs.Injector) error {
		return runJob(ctx, w.job(in), 2)
	}},
	"again": {batches: 4,
		before: func(ctx context.Context, w *world) error { return runJob(ctx, w.job(nil), 2) },
		run: func(ctx context.Context, w *world, in vfs.Injector) error {
			return runJob(ctx, w.job(in), 4)
		}},
	"rescale": {batches: 4,
		before: func(ctx context.Context, w *world) error { return runJob(ctx, w.job(nil), 3) },
		run: func(ctx context.Context, w *world, in vfs.Injector) error {
			j := w.job(in, counts("counts", 3))
			j.cfg.Rescale = true
			return runJob(ctx, j, 4)
		}},
	"migrate and drop and add": {batches: 4, ops: []JobOperator{counts("counts", 2)},
		before: func(ctx context.Context, w *world) error {
			j := w.job(nil, counts("counts", 2), counts("gone", 1))
			j.quiet = "gone"
			return runJob(ctx, j, 3)
		},
		run: func(ctx context.Context, w *world, in vfs.Injector) error {
			j := w.job(in, widened(counts("counts", 2)), counts("new", 1))
			j.cfg.Drop = []string{"gone"}
			j.quiet = "new"
			return runJob(ctx, j, 4)
		}},
	"pending and all at once": {batches: 4, ops: []JobOperator{counts("counts", 2)},
		before: func(ctx context.Context, w *world) error {
			var f vfs.Faults
			j := w.job(&f, counts("counts", 2), counts("gone", 1))
			j.quiet = "gone"
			f.Fail(vfs.Rule{Path: "commits/3", Dead: true})
			if err := runJob(ctx, j, 3); err == nil {
				return fmt.Errorf("epoch 3 was committed")
			}
			w.m = w.m.crash(0, 0)
			return nil
		},
		run: func(ctx context.Context, w *world, in vfs.Injector) error {
			j := w.job(in, widened(counts("counts", 3)))
			j.cfg.Rescale, j.cfg.Drop = true, []string{"gone"}
			return runJob(ctx, j, 4)
		}},
}

// start prepares a world for a script.
func (sc *script) start(t testing.TB, kind string) *world {
	w := &world{m: roots[kind](), b: &board{}}
	if sc.before != nil {
		require.NoError(t, sc.before(t.Context(), w))
	}
	return w
}

// calls is how many calls a script makes without faults.
func (sc *script) calls(t testing.TB, kind string) int {
	w := sc.start(t, kind)
	var f vfs.Faults
	require.NoError(t, sc.run(t.Context(), w, &f))
	return f.Calls()
}

// finish runs a script to its end, without faults, and compares.
func (sc *script) finish(t testing.TB, w *world, hint string) {
	if err := sc.run(t.Context(), w, nil); err != nil {
		require.NoError(t, err, hint)
	}
	sc.compare(t, w, hint)
}

func (sc *script) compare(t testing.TB, w *world, hint string) {
	if sc.state == "" {
		sc.state, sc.rows = reference(t, sc.batches, sc.ops...)
	}
	require.Equal(t, sc.state, state0(t, w.m), hint)
	require.Equal(t, sc.rows, w.b.rows["a"], hint)
	require.Equal(t, sc.rows, w.b.rows["b"], hint)
}

func forScripts(t *testing.T, test func(t *testing.T, sc script, kind string)) {
	for name, sc := range scripts {
		for kind := range roots {
			t.Run(name+"/"+kind, func(t *testing.T) { test(t, sc, kind) })
		}
	}
}

// TestCrashAtEveryCall: a process that dies at any call of a start, a plan, an
// epoch or a change, with all unsynced data lost, leaves a root from which the
// next run goes on as if nothing had been (report 13, report 31).
func TestCrashAtEveryCall(t *testing.T) {
	forScripts(t, func(t *testing.T, sc script, kind string) {
		n := sc.calls(t, kind)
		for k := 1; k <= n; k += stride {
			for _, after := range []bool{false, true} {
				if kind == "mem" && after == (k%2 == 0) {
					continue // many small calls, of which half is enough
				}
				w := sc.start(t, kind)
				var f vfs.Faults
				f.Fail(vfs.Rule{K: k, Dead: true, After: after})
				err := sc.run(t.Context(), w, &f)
				hint := fmt.Sprintf("call %d of %d, after: %v: %v", k, n, after, err)
				require.Positive(t, f.Hits(), hint)
				sc.finish(t, &world{m: w.m.crash(0, 0), b: w.b.clone()}, hint)
				if kind == "mem" && k%4 == 1 { // some of what was not synced may be there
					sc.finish(t, &world{m: w.m.crash(uint64(k), 50), b: w.b.clone()}, hint)
				}
			}
		}
	})
}

// TestFailureAtEveryCall: a single failure, before the call or with its answer
// lost, is got over by a second try and harms nothing (P4, CE13).
func TestFailureAtEveryCall(t *testing.T) {
	forScripts(t, func(t *testing.T, sc script, kind string) {
		n := sc.calls(t, kind)
		for k := 1; k <= n; k += stride {
			for _, after := range []bool{false, true} {
				if kind == "mem" && after == (k%2 == 0) {
					continue // many small calls, of which half is enough
				}
				w := sc.start(t, kind)
				var f vfs.Faults
				f.Fail(vfs.Rule{K: k, After: after})
				err := sc.run(t.Context(), w, &f)
				hint := fmt.Sprintf("call %d of %d, after: %v: %v", k, n, after, err)
				require.Positive(t, f.Hits(), hint)
				if err != nil { // some calls are not tried again in these jobs
					sc.finish(t, &world{m: w.m.crash(0, 100), b: w.b}, hint)
					continue
				}
				sc.compare(t, w, hint)
			}
		}
	})
}

// TestRetries: with retries, which the engine has, no single failure ends a run,
// but for that of its last call.
func TestRetries(t *testing.T) {
	for kind := range roots {
		sc := scripts["again"]
		n := sc.calls(t, kind)
		ended := 0
		for k := 1; k <= n; k++ {
			w := sc.start(t, kind)
			var f vfs.Faults
			f.Fail(vfs.Rule{K: k})
			j := w.job(&f)
			j.cfg.Options.RetryLimit = time.Second
			told := 0
			j.cfg.Notice = func(n Notice) {
				if n.Kind == NoticeRetry {
					told++
				}
			}
			if err := runJob(t.Context(), j, 4); err != nil {
				require.ErrorIs(t, err, vfs.ErrInjected)
				require.ErrorContains(t, err, "give the lock back")
				ended++
				sc.finish(t, &world{m: w.m.crash(0, 100), b: w.b}, err.Error())
				continue
			}
			sc.compare(t, w, "")
		}
		require.LessOrEqual(t, ended, 1, kind)
	}
}
