package reports

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// gated is a store that counts what puts write and in which every snapshot waits,
// before its first byte, until the test lets it go on.
type gated struct {
	vfs.Store
	began chan string // names
	goOn  chan string
	ended chan string

	mu                           sync.Mutex
	deltas, documents, snapshots int64
}

func newGated(s vfs.Store) *gated {
	return &gated{Store: s, began: make(chan string), goOn: make(chan string), ended: make(chan string)}
}

func (g *gated) PutIfAbsent(ctx context.Context, name string, write func(io.Writer) error) error {
	count := func(written *int64) error {
		return g.Store.PutIfAbsent(ctx, name, func(w io.Writer) error { return write(&counting{w, g, written}) })
	}
	switch {
	case strings.HasSuffix(name, ".delta"):
		return count(&g.deltas)
	case !strings.HasSuffix(name, ".snapshot"):
		return count(&g.documents)
	}
	for _, door := range []chan string{g.began, g.goOn} {
		if err := meet(ctx, door, name); err != nil {
			return err
		}
	}
	if err := count(&g.snapshots); err != nil {
		return err
	}
	return meet(ctx, g.ended, name)
}

// meet waits for the test at a door.
func meet(ctx context.Context, door chan string, name string) error {
	select {
	case door <- name:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take tells what was written since the last call.
func (g *gated) take() (deltas, documents, snapshots int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	deltas, documents, snapshots = g.deltas, g.documents, g.snapshots
	g.deltas, g.documents, g.snapshots = 0, 0, 0
	return deltas, documents, snapshots
}

type counting struct {
	w  io.Writer
	g  *gated
	of *int64
}

func (c *counting) Write(p []byte) (int, error) {
	c.g.mu.Lock()
	*c.of += int64(len(p))
	c.g.mu.Unlock()
	return c.w.Write(p)
}

// beside is a run whose maintenance is beside the batches, as in production.
type beside struct {
	t     *testing.T
	clock *clock.Manual
	h     *harness.Harness
	ssc   *dstream.StreamingContext
	last  dstream.Progress
}

func runBeside(t *testing.T, src source.Source[record], opts ...dstream.ContextOption) *beside {
	b := &beside{t: t, clock: clock.NewManual(time.Unix(1_000_000, 0)), h: harness.New()}
	b.h.OnOutput(func(context.Context, harness.OutputCall) error { return nil })
	b.ssc = dstream.NewStreamingContext(time.Second, append(opts, dstream.WithClock(b.clock), dstream.WithHarness(b.h),
		dstream.WithOutput(io.Discard), dstream.WithParallelism(1), // one snapshot at a time

		dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) { b.last = p }}))...)
	require.NoError(t, keyed(src)(b.ssc))
	require.NoError(t, b.ssc.Start())
	t.Cleanup(func() { _ = b.ssc.Stop(context.Background()) })
	return b
}

// tick runs a batch and gives its progress.
func (b *beside) tick() dstream.Progress {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	b.clock.Advance(time.Second)
	require.NoError(b.t, b.h.WaitTick(ctx, b.clock.Now()))
	return b.last
}

// within waits at a door of the store.
func within(t *testing.T, door chan string, what string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case name := <-door:
		return name
	case <-ctx.Done():
		t.Fatal(what)
		return ""
	}
}

// report 18: with a checkpoint, too, a batch costs what it changes: so many bytes are
// written for it and allocated by it, however large the state is, and a snapshot,
// which costs the whole state, is no part of it: batches go on while one waits.
func TestDurableBatchCostsWhatItChanges(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector and the invariants allocate beside what is measured here")
	}
	keys := int64(200_000)
	if os.Getenv("STATEMILL_SOAK") != "" {
		keys = 1_000_000
	}
	const every, deep, many, few = 10, 4, 60, 20
	changed := keys / 100
	batches := batchesOf(0, keys, false)
	loaded := len(batches)
	for i := range many + few {
		n := changed
		if i >= many {
			n = changed / 10
		}
		from := int64(i) * changed % (keys - changed)
		batches = append(batches, keyRange{from, from + n, false})
	}

	g := newGated(vfs.NewObjects())
	b := runBeside(t, &made{batches}, dstream.WithCheckpointStore(g, dstream.SnapshotEvery(every), dstream.SnapshotBySize(false)))
	at := 0
	for ; at < loaded; at++ {
		b.tick()
	}
	loadBytes, _, _ := g.take()
	perKey := float64(loadBytes) / float64(keys)

	var costs []int64
	measured := func() {
		t.Helper()
		n := batches[at].until - batches[at].from
		before := allocated()
		p := b.tick()
		cost := allocated() - before
		at++
		deltas, documents, _ := g.take()
		want := perKey * float64(n)
		require.EqualValues(t, n, p.Operators[0].Changed)
		require.Equal(t, deltas, p.Checkpoint.DeltaBytes)
		require.LessOrEqual(t, float64(deltas+documents), 2*want, "bytes of batch %d, which changed %d keys", at, n)
		require.GreaterOrEqual(t, float64(deltas), want/2, "bytes of batch %d, which changed %d keys", at, n)
		require.LessOrEqual(t, cost, 500*n+64<<10, "bytes allocated by batch %d, which changed %d keys", at, n)
		costs = append(costs, cost)
	}
	last := map[int]int{0: 0, 1: 0, 2: 0, 3: 0} // version of each partition's newest snapshot
	snapshots, while := int64(0), 0
	for at < len(batches) {
		due := false
		for _, version := range last {
			due = due || at-version >= every
		}
		if !due {
			measured()
			continue
		}
		name := within(t, g.began, "a snapshot is due, and none is begun")
		for range deep { // batches go on while it waits
			measured()
			if while++; while > deep || at == len(batches) {
				break
			}
		}
		require.Equal(t, name, within(t, g.goOn, "the snapshot does not go on"))
		within(t, g.ended, "the snapshot does not end")
		_, _, bytes := g.take()
		snapshots += bytes
		var part, version int
		_, err := fmt.Sscanf(name, "state/1/%d/%d.1.snapshot", &part, &version)
		require.NoError(t, err)
		last[part] = version
	}
	t.Logf("bytes a key %.1f; allocated by a batch: median %d, most %d; snapshots wrote %d bytes", perKey, rank(costs, 50), rank(costs, 100), snapshots)
	require.Greater(t, float64(snapshots), 4*perKey*float64(keys), "the whole state, again and again")
	require.Greater(t, while, many/5, "batches during which a snapshot was under way")
	require.Zero(t, b.last.Checkpoint.SnapshotsForced)
	require.NoError(t, b.ssc.Stop(context.Background()))
}
