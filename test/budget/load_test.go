package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/source"
)

const (
	loadEnv   = "STATEMILL_LOAD_CHECKPOINT"
	loadKeys  = 1_000_000
	soakKeys  = 10_000_000
	loadBatch = 250_000
	loadParts = 4
)

// counted gives new keys until all are there, then the first tenth of them again in
// two batches, so that there are deltas behind the snapshot.
type counted struct{ keys int64 }

func (counted) Open(context.Context, *source.Plan) error     { return nil }
func (counted) Committed(context.Context, source.Plan) error { return nil }
func (counted) Close() error                                 { return nil }

func (c counted) batches() uint64 { return uint64(c.keys/loadBatch) + 2 }

func (c counted) Plan(_ context.Context, l source.Limits) (source.Plan, error) {
	from := int64(l.Epoch-1) * loadBatch
	until := from + loadBatch
	if over := from - c.keys; over >= 0 {
		from = over / loadBatch * (c.keys / 20)
		until = from + c.keys/20
	}
	return source.Plan{Ranges: []source.Range{{Partition: "keys", From: from, Until: until, Epoch: strconv.FormatUint(l.Epoch, 10)}}}, nil
}

func (c counted) Read(_ context.Context, r source.Range, emit func(int64, int64) error) error {
	for off := r.From; off < r.Until; off++ {
		if err := emit(off, off); err != nil {
			return err
		}
	}
	return nil
}

func loadJob(src source.Source[int64]) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		ids := dstream.KeyBy(dstream.From(ssc, "keys", src), func(id int64) string {
			return fmt.Sprintf("%016x", uint64(id)*0x9e3779b97f4a7c15)
		})
		dstream.Print(dstream.MapWithState(ids, dstream.FunctionTime(
			func(_ time.Time, _ string, id dstream.Option[int64], s *dstream.State[int64]) (int, bool) {
				s.Update(s.OrElse(0) + id.OrElse(0))
				return 0, false
			}).Named("sums").NumPartitions(loadParts)), 1, dstream.Name("nothing"))
		return nil
	}
}

// loadReport is what the child tells of the load.
type loadReport struct {
	Peak, Final  int64 // bytes
	Keys         int64
	Events       int
	Partitions   int
	Files, Total int
	Bytes        int64
	Faults       []string
	Took         time.Duration
}

// loadChild starts the job on a checkpoint in a process of its own, and tells what
// the load took from the system.
func loadChild(dir string) int {
	var out loadReport
	var ssc *dstream.StreamingContext
	last := map[int]dstream.StateLoading{}
	bad := func(format string, args ...any) { out.Faults = append(out.Faults, fmt.Sprintf(format, args...)) }
	ssc = dstream.NewStreamingContext(time.Hour, dstream.WithCheckpoint(dir), dstream.WithOutput(io.Discard), dstream.WithParallelism(2),
		dstream.WithListener(dstream.Listener{StateLoading: func(p dstream.StateLoading) {
			out.Events++
			if err := ssc.ReadyErr(); !errors.Is(err, dstream.ErrNotReady) {
				bad("ready while %+v: %v", p, err)
			}
			before := last[p.Partition]
			if p.Files < before.Files || p.Bytes < before.Bytes || p.Keys < before.Keys || p.Files > p.FilesTotal || p.Bytes > p.BytesTotal {
				bad("%+v after %+v", p, before)
			}
			last[p.Partition] = p
		}}))
	if err := loadJob(counted{})(ssc); err != nil {
		fmt.Println(err)
		return 4
	}
	before := inUse()
	from := time.Now()
	if err := ssc.Start(); err != nil {
		fmt.Println(err)
		return 5
	}
	out.Took = time.Since(from)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	// What the heap ever had from the system, which does not go down.
	out.Peak = int64(m.HeapSys) - before
	if err := ssc.ReadyErr(); err != nil {
		bad("not ready after the start: %v", err)
	}
	out.Final = inUse() - before
	for _, p := range last {
		if p.Done {
			out.Partitions++
		}
		out.Keys += p.Keys
		out.Files += p.Files
		out.Total += p.FilesTotal
		out.Bytes += p.Bytes
	}
	if err := ssc.Stop(context.Background()); err != nil {
		bad("stop: %v", err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return 6
	}
	return 0
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// report 19: loading many keys from snapshots and deltas takes at most one and a half
// times the memory of the loaded state, tells how far it is, and the context is not
// ready before its end. The greatest heap of a process of its own counts, with a
// collector that leaves little (GOGC=10), so that garbage is not taken for need.
func TestLoadOfManyKeys(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	src := counted{loadKeys}
	if os.Getenv("STATEMILL_SOAK") != "" {
		src.keys = soakKeys
	}
	dir := filepath.Join(t.TempDir(), "ckpt")
	fill(t, src, dir)

	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), loadEnv+"="+dir, "GOGC=10")
	var errs strings.Builder
	cmd.Stderr = &errs
	text, err := cmd.Output()
	require.NoError(t, err, "%s%s", text, errs.String())
	var got loadReport
	require.NoError(t, json.Unmarshal(text, &got))
	t.Logf("%d keys, %d files, %d bytes in %v: heap at most %d MiB, afterwards %d MiB (%.2f), %d events",
		got.Keys, got.Files, got.Bytes, got.Took, got.Peak>>20, got.Final>>20, float64(got.Peak)/float64(got.Final), got.Events)
	require.Empty(t, got.Faults)
	require.EqualValues(t, src.keys, got.Keys)
	require.Equal(t, loadParts, got.Partitions, "partitions that told of their end")
	require.Equal(t, got.Total, got.Files)
	require.GreaterOrEqual(t, got.Files, 2*loadParts, "a snapshot and a delta at least")
	require.LessOrEqual(t, float64(got.Peak), 1.5*float64(got.Final))
	require.GreaterOrEqual(t, got.Events, got.Files, "one event a file at least")
}

// fill makes the checkpoint.
func fill(t *testing.T, src counted, dir string) {
	now := clock.NewManual(time.Unix(1_000_000, 0))
	h := harness.New()
	h.MaintainInline()
	ssc := dstream.NewStreamingContext(time.Second, dstream.WithClock(now), dstream.WithHarness(h), dstream.WithOutput(io.Discard),
		dstream.WithCheckpoint(dir, dstream.SnapshotEvery(int(src.batches()-2)), dstream.SnapshotBySize(false)))
	require.NoError(t, loadJob(src)(ssc))
	require.NoError(t, ssc.Start())
	for range src.batches() {
		now.Advance(time.Second)
		require.NoError(t, h.WaitTick(t.Context(), now.Now()))
	}
	require.NoError(t, ssc.Stop(t.Context()))
}
