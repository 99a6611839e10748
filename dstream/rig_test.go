package dstream_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// zero is the grid's origin in the tests: a multiple of every interval in use.
var zero = time.Unix(1_000_020, 0).UTC()

// rig runs a job tick by tick on a manual clock and keeps what its outputs saw.
type rig struct {
	t        testing.TB
	interval time.Duration
	clock    *clock.Manual
	h        *harness.Harness
	ssc      *dstream.StreamingContext

	mu       sync.Mutex
	rows     map[string][]any // by output, one a batch in which it ran
	times    map[string][]time.Time
	progress []dstream.Progress
	fail     func(c harness.OutputCall) error
}

func newRig(t testing.TB, interval time.Duration, job dstream.Job, opts ...dstream.ContextOption) *rig {
	t.Helper()
	r := &rig{t: t, interval: interval, clock: clock.NewManual(zero), h: harness.New(), rows: map[string][]any{}, times: map[string][]time.Time{}}
	r.h.RetryAtOnce()
	r.h.OnOutput(func(ctx context.Context, c harness.OutputCall) error {
		if r.fail != nil {
			if err := r.fail(c); err != nil {
				return err
			}
		}
		if err := c.Run(ctx); err != nil {
			return err
		}
		got, err := c.Rows(ctx)
		if err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.rows[c.Name] = append(r.rows[c.Name], got)
		r.times[c.Name] = append(r.times[c.Name], c.Time)
		return nil
	})
	base := []dstream.ContextOption{
		dstream.WithClock(r.clock), dstream.WithHarness(r.h), dstream.WithParallelism(2), dstream.WithOutput(discard{}),
		dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.progress = append(r.progress, p)
		}}),
	}
	r.ssc = dstream.NewStreamingContext(interval, append(base, opts...)...)
	require.NoError(t, job(r.ssc))
	return r
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// start starts the run; the test's end stops it.
func (r *rig) start() *rig {
	r.t.Helper()
	require.NoError(r.t, r.ssc.Start())
	r.t.Cleanup(func() { _ = r.ssc.Stop(context.Background()) })
	return r
}

// tick runs n batches; they must succeed.
func (r *rig) tick(n int) *rig {
	r.t.Helper()
	for range n {
		require.NoError(r.t, r.tryTick())
	}
	return r
}

// tryTick runs one batch, or gives the error that ended the run.
func (r *rig) tryTick() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r.clock.Advance(r.interval)
	return r.h.WaitTick(ctx, r.clock.Now())
}

// jump runs one batch n intervals on: the ticks between are skipped.
func (r *rig) jump(n int) *rig {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r.clock.Advance(time.Duration(n) * r.interval)
	require.NoError(r.t, r.h.WaitTick(ctx, r.clock.Now()))
	return r
}

// end waits for the end of the run and gives its error.
func (r *rig) end() error { return r.ssc.Wait() }

func (r *rig) last() dstream.Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress[len(r.progress)-1]
}

// out gives what an output saw, batch by batch.
func out[T any](r *rig, name string) [][]T {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := [][]T{}
	for _, b := range r.rows[name] {
		all = append(all, b.([]T))
	}
	return all
}

// sorted is out with each batch sorted.
func sorted[T cmp.Ordered](r *rig, name string) [][]T {
	all := out[T](r, name)
	for _, b := range all {
		slices.Sort(b)
	}
	return all
}

// pairs is out of pairs as "key value" texts, each batch sorted.
func pairs[K cmp.Ordered, V any](r *rig, name string) [][]string {
	all := [][]string{}
	for _, b := range out[dstream.Pair[K, V]](r, name) {
		texts := []string{}
		for _, p := range b {
			texts = append(texts, fmt.Sprintf("%v%v", p.Key, p.Value))
		}
		slices.Sort(texts)
		all = append(all, texts)
	}
	return all
}

// stateRows is the committed state of an operator, sorted by key.
func stateRows[K cmp.Ordered, S any](r *rig, op string) []harness.StateRow[K, S] {
	r.t.Helper()
	got, err := r.h.Engine().State(op)
	require.NoError(r.t, err)
	rows := got.([]harness.StateRow[K, S])
	slices.SortFunc(rows, func(a, b harness.StateRow[K, S]) int { return cmp.Compare(a.Key, b.Key) })
	return rows
}

// stateOf is the committed state of an operator as a map.
func stateOf[K cmp.Ordered, S any](r *rig, op string) map[K]S {
	r.t.Helper()
	m := map[K]S{}
	for _, row := range stateRows[K, S](r, op) {
		m[row.Key] = row.State
	}
	return m
}
