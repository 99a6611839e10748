package metamorphic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/internal/oracle"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// A saga is a job with an exactly-once sink in several lives on one disk, where its
// checkpoint and its sink lie. Everything in it comes from the seed.
type saga struct {
	testing.TB
	rng     *rand.Rand
	batches [][]command
	disk    *vfs.Mem
	now     time.Time
	lives   int
	told    []string // what the lives were, for messages

	times map[uint64]int64 // batch time by epoch, of every batch that was committed

	mu      sync.Mutex
	planned map[uint64]int64   // batch time by epoch, of every batch that began
	plain   map[int64][]string // by batch time, what the plain output was given
}

// tellingJob has every kind of operator on the way to one sink and one plain output.
func (s *saga) tellingJob(ssc *dstream.StreamingContext, parts, threshold int, out *sink.Files) {
	commands := dstream.From(ssc, "commands", &oracle.Script[command]{Batches: s.batches, Partitions: 2})
	byKey := dstream.KeyBy(dstream.Filter(commands, func(c command) bool { return c.Op != '.' }), func(c command) string { return c.Key })
	sums := dstream.MapWithState(byKey, dstream.FunctionTime(sum).Named("sums").
		Timeout(2*time.Second).NumPartitions(parts).DeltaChainThreshold(threshold))
	sessions := dstream.Keyed(byKey, "sessions", func(c *dstream.Call[[]int64, dstream.Pair[string, string]], key string, v dstream.Option[command]) error {
		got, ok := v.Get()
		if !ok {
			c.Emit(dstream.KV(key, fmt.Sprint("session ", c.State.Get(), " closed at ", c.Batch.Time.Unix())))
			return nil
		}
		if got.Op == '-' {
			c.State.Remove()
			return nil
		}
		c.State.Update(append(c.State.OrElse(nil), got.N))
		c.SetDeadline(c.Batch.Time.Add(time.Duration(2+got.N&1) * time.Second))
		return nil
	}, dstream.NumPartitions(parts))
	closed := dstream.MapWithState(sessions, dstream.Function(
		func(key string, text dstream.Option[string], st *dstream.State[map[string]int]) string {
			m := st.OrElse(map[string]int{})
			m[text.OrElse("")]++
			st.Update(m)
			return fmt.Sprint("closed ", key, " ", len(m), " ", text.OrElse(""))
		}).Named("closed").NumPartitions(parts+1))
	ops := dstream.MapValues(byKey, func(c command) string { return fmt.Sprintf("%c%d", c.Op, c.N) })
	reduced := dstream.Map(dstream.ReduceByKey(ops, func(a, b string) string { return a + b }, dstream.NumPartitions(parts)),
		func(p dstream.Pair[string, string]) string { return "reduced " + p.Key + " " + p.Value })
	all := dstream.Union(sums, closed, reduced)
	dstream.ForeachRDD(all, func(ctx context.Context, b dstream.Batch, r *dstream.RDD[string]) error {
		rows, err := rdd.Collect(ctx, r)
		s.attempt(b, rows)
		return err
	}, dstream.Name("plain"))
	if out != nil {
		dstream.Output(all, "out", sink.Lines(out, sink.Text[string]))
	}
}

// attempt notes what the plain output was given: more than once if the epoch was redone,
// and then the same.
func (s *saga) attempt(b dstream.Batch, rows []string) {
	rows = append([]string{}, rows...)
	slices.Sort(rows)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := b.Time.UnixNano()
	if before, ok := s.plain[at]; ok && !slices.Equal(before, rows) {
		s.Errorf("the batch of %v was given out twice, as %q and as %q", b.Time.Unix(), before, rows)
	}
	s.plain[at] = rows
}

// started notes a batch, which has its number and its time for good.
func (s *saga) started(b dstream.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.planned[b.Epoch]; ok && before != b.Time.UnixNano() {
		s.Errorf("epoch %d began at %d, and then at %d", b.Epoch, before, b.Time.UnixNano())
	}
	s.planned[b.Epoch] = b.Time.UnixNano()
}

// telling is a run of the job.
type telling struct {
	clock *clock.Manual
	h     *harness.Harness
	ssc   *dstream.StreamingContext
}

func (s *saga) begin(inline bool, opts ...dstream.ContextOption) *telling {
	r := &telling{clock: clock.NewManual(s.now), h: harness.New()}
	r.h.RetryAtOnce()
	if inline {
		r.h.MaintainInline()
	}
	opts = append(opts, dstream.WithListener(dstream.Listener{BatchStarted: s.started}))
	r.ssc = dstream.NewStreamingContext(time.Second, append(opts, dstream.WithClock(r.clock), dstream.WithHarness(r.h))...)
	return r
}

// wait waits for the batch of a tick.
func (r *telling) wait(t testing.TB, tick time.Time) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := r.h.WaitTick(ctx, tick)
	require.NoError(t, ctx.Err(), "the run is stuck")
	return err
}

func (s *saga) store(fs vfs.FS, folder string) vfs.Store {
	store, err := vfs.NewDir(fs, "/"+folder, fmt.Sprint("life", s.lives))
	require.NoError(s, err)
	return store
}

// life is one run; the last one goes on until all batches are committed.
func (s *saga) life(last bool) *telling {
	s.lives++
	rng := s.rng
	var f vfs.Faults
	dies, after, ticks, crash, abort := 1+rng.IntN(220), rng.IntN(2) == 0, rng.IntN(6), rng.IntN(3) > 0, rng.IntN(4) == 0
	if last {
		crash, ticks = false, 1000
	}
	if crash {
		f.Fail(vfs.Rule{K: dies, After: after, Dead: true, Forever: true})
	}
	fs := vfs.WithFaults(s.disk, &f)
	parts, threshold, inline := 1+rng.IntN(5), 1+rng.IntN(20), rng.IntN(4) > 0
	every, retain, bySize := []int{1, 2, 7}[rng.IntN(3)], 1+rng.IntN(3), rng.IntN(2) == 0
	compress, workers := dstream.Compression(rng.IntN(3)), 1+rng.IntN(4)
	s.told = append(s.told, fmt.Sprintf("parts=%d threshold=%d every=%d retain=%d bySize=%t %v workers=%d inline=%t ticks=%d crash=%t at %d after=%t abort=%t",
		parts, threshold, every, retain, bySize, compress, workers, inline, ticks, crash, dies, after, abort))

	r := s.begin(inline, dstream.WithRescale(), dstream.WithParallelism(workers), dstream.WithIORetry(0),
		dstream.WithCheckpointStore(s.store(fs, "ckpt"), dstream.SnapshotEvery(every), dstream.RetainSnapshots(retain),
			dstream.SnapshotBySize(bySize), dstream.Compress(compress)))
	s.tellingJob(r.ssc, parts, threshold, sink.NewFiles("out", s.store(fs, "out")))
	err := r.ssc.Start()
	for n := 0; err == nil && n < ticks && !s.complete(); n++ {
		r.clock.Advance(time.Second)
		zero := r.h.Engine().ZeroTime()
		err = r.wait(s, zero.Add(r.clock.Now().Sub(zero).Truncate(time.Second)))
		s.look()
	}
	ctx, cancel := context.WithCancel(context.Background())
	if abort && crash {
		cancel()
	}
	err = errors.Join(err, r.ssc.Stop(ctx))
	cancel()
	if f.Hits() == 0 && !errors.Is(err, dstream.ErrStopTimeout) {
		require.NoError(s, err, s.told)
	}
	s.now = r.clock.Now()
	if crash {
		s.disk = s.disk.CrashClone(rng, []int{0, 50, 100}[rng.IntN(3)])
	}
	s.look()
	if rng.IntN(3) == 0 {
		s.now = s.now.Add(time.Duration(rng.IntN(8000)) * time.Millisecond)
	}
	return r
}

// look notes the times of the batches that are committed.
func (s *saga) look() {
	root := checkpoint.OpenRoot(s.store(s.disk, "ckpt"))
	require.NoError(s, root.Read(s.Context(), func(*checkpoint.Commit) error {
		numbers, err := root.Commits(s.Context())
		for _, n := range numbers {
			if _, ok := s.times[n]; ok || err != nil {
				continue
			}
			var p *checkpoint.Plan
			if p, err = root.Plan(s.Context(), n); err == nil && p.Kind == checkpoint.KindBatch {
				s.times[n] = p.Time
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for n, at := range s.planned { // what was cleaned up since the last look
			if len(numbers) > 0 && n <= numbers[len(numbers)-1] {
				s.times[n] = at
			}
		}
		return err
	}), s.told)
}

// quiet are batches without input at the end, in which what is left times out.
const quiet = 5

func (s *saga) complete() bool { return len(s.times) >= len(s.batches)+quiet }

// shown is what readers of the sink see, by batch.
func (s *saga) shown() (epochs []uint64, all [][]string) {
	for n := range s.times {
		epochs = append(epochs, n)
	}
	slices.Sort(epochs)
	for range epochs {
		all = append(all, []string{})
	}
	files, err := sink.OpenFiles(s.Context(), s.store(s.disk, "out"), "out", "")
	require.NoError(s, err, s.told)
	for row, err := range files.Rows(s.Context()) {
		require.NoError(s, err, s.told)
		i, ok := slices.BinarySearch(epochs, row.Epoch)
		require.True(s, ok, "the sink shows epoch %d, which was not committed: %v", row.Epoch, s.told)
		all[i] = append(all[i], string(row.Data))
	}
	for _, rows := range all {
		slices.Sort(rows)
	}
	return epochs, all
}

// stateOf gives an operator's rows as texts.
func stateOf[S any](t testing.TB, r *telling, op string) (rows []string) {
	got, err := r.h.Engine().State(op)
	require.NoError(t, err)
	list := got.([]harness.StateRow[string, S])
	slices.SortFunc(list, func(a, b harness.StateRow[string, S]) int { return cmp.Compare(a.Key, b.Key) })
	for _, row := range list {
		rows = append(rows, fmt.Sprint(row.Key, " ", row.State, " ", row.Time))
	}
	return rows
}

func states(t testing.TB, r *telling) [][]string {
	return [][]string{stateOf[int64](t, r, "sums"), stateOf[[]int64](t, r, "sessions"), stateOf[map[string]int](t, r, "closed")}
}

// play runs a saga and compares it with a run in memory that nothing happens to.
func play(t testing.TB, seed uint64) (lives int) {
	rng := rand.New(rand.NewPCG(seed, 20))
	s := &saga{TB: t, rng: rng, disk: vfs.NewMem(), now: time.Unix(1_000_000, 0), times: map[uint64]int64{}, plain: map[int64][]string{}, planned: map[uint64]int64{}}
	for range 3 + rng.IntN(8) {
		batch := make([]command, rng.IntN(20))
		for i := range batch {
			batch[i] = command{Key: []string{"a", "b", "c", "d", ""}[rng.IntN(5)], Op: "+++-?."[rng.IntN(6)], N: rng.Int64N(9)}
		}
		s.batches = append(s.batches, batch)
	}
	for range rng.IntN(7) {
		s.life(false)
	}
	got := s.life(true)
	s.told = append(s.told, fmt.Sprint("seed ", seed))
	require.True(t, s.complete(), s.told)
	epochs, shown := s.shown()

	whole := &saga{TB: t, batches: s.batches, plain: map[int64][]string{}, planned: map[uint64]int64{}, now: time.Unix(1_000_000, 0)}
	want := whole.begin(false)
	whole.tellingJob(want.ssc, 2, 20, nil)
	require.NoError(t, want.ssc.Start())
	for i, n := range epochs {
		at := s.times[n]
		want.clock.Set(time.Unix(0, at))
		require.NoError(t, want.wait(t, time.Unix(0, at)))
		require.Equal(t, whole.plain[at], shown[i], "the sink, epoch %d: %v", n, s.told)
		if rows, ok := s.plain[at]; ok || len(shown[i]) > 0 { // an epoch may be adopted, its plain output having run
			require.Equal(t, whole.plain[at], rows, "the plain output, epoch %d: %v", n, s.told)
		}
	}
	require.Equal(t, states(t, want), states(t, got), "%v", s.told)
	require.NoError(t, want.ssc.Stop(context.Background()))
	return s.lives
}

// Whatever happens to a job, its exactly-once sink shows what an uninterrupted run
// writes, its plain output is given the same each time, and the states are equal.
// STATEMILL_SOAK_SAGAS is how long to go on, such as 10m; the default is two seconds.
// STATEMILL_SAGA is a seed to begin with.
func TestSagas(t *testing.T) {
	t.Parallel()
	for_, err := time.ParseDuration(cmp.Or(os.Getenv("STATEMILL_SOAK_SAGAS"), "2s"))
	require.NoError(t, err)
	first := uint64(1)
	if text := os.Getenv("STATEMILL_SAGA"); text != "" {
		_, err := fmt.Sscan(text, &first)
		require.NoError(t, err)
	}
	sagas, lives := 0, 0
	for begun := time.Now(); time.Since(begun) < for_ || sagas < 10; sagas++ {
		lives += play(t, first+uint64(sagas))
	}
	t.Logf("%d sagas of %d lives, seeds from %d on", sagas, lives, first)
}
