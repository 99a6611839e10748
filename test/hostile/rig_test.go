package hostile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type word = dstream.Pair[string, int]

// topic is a log of one partition that outlives runs.
type topic struct {
	mu   sync.Mutex
	rows []string
}

func (l *topic) add(rows ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = append(l.rows, rows...)
}

// reader is a source over a topic; it begins at the topic's first record.
type reader struct {
	log *topic
	at  int64
}

func (r *reader) Open(_ context.Context, last *source.Plan) error {
	r.at = 0
	if last != nil {
		for _, p := range last.Ranges {
			r.at = p.Until
		}
	}
	return nil
}

func (r *reader) Plan(context.Context, source.Limits) (source.Plan, error) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	from := r.at
	r.at = int64(len(r.log.rows))
	return source.Plan{Ranges: []source.Range{{Partition: "0", From: from, Until: r.at}}}, nil
}

func (r *reader) Read(_ context.Context, p source.Range, emit func(int64, string) error) error {
	r.log.mu.Lock()
	rows := r.log.rows[p.From:p.Until]
	r.log.mu.Unlock()
	for i, v := range rows {
		if err := emit(p.From+int64(i), v); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) Committed(context.Context, source.Plan) error { return nil }
func (r *reader) Close() error                                 { return nil }

// world is what outlives runs: a disk, topics, and the time.
type world struct {
	testing.TB
	fs     vfs.FS
	dir    string
	now    time.Time
	topics map[string]*topic
	lives  int
	last   *life
}

func newWorld(t testing.TB) *world {
	return &world{TB: t, fs: vfs.NewMem(), dir: "ckpt", now: time.Unix(1_000_000, 0), topics: map[string]*topic{}}
}

func (w *world) topic(name string) *topic {
	if w.topics[name] == nil {
		w.topics[name] = &topic{}
	}
	return w.topics[name]
}

// words is the stream of a topic's words, each with 1.
func (w *world) words(ssc *dstream.StreamingContext, name string) *dstream.DStream[word] {
	lines := dstream.From[string](ssc, name, &reader{log: w.topic(name)})
	return dstream.MapPair(lines, func(s string) (string, int) { return s, 1 })
}

// files is a unit of files beside the checkpoint.
func (w *world) files(name string) *sink.Files {
	store, err := vfs.NewDir(w.fs, w.dir+"-out", fmt.Sprint("life", w.lives))
	require.NoError(w, err)
	return sink.NewFiles(name, store)
}

// written is what readers of a unit of files see.
func (w *world) written(name string) (rows []string) {
	store, err := vfs.NewDir(w.fs, w.dir+"-out", "reader")
	require.NoError(w, err)
	r, err := sink.OpenFiles(context.Background(), store, name, "")
	require.NoError(w, err)
	for row, err := range r.Rows(context.Background()) {
		require.NoError(w, err)
		rows = append(rows, fmt.Sprintf("%d %s", row.Epoch, row.Data))
	}
	return rows
}

// life is one run.
type life struct {
	w        *world
	interval time.Duration
	clock    *clock.Manual
	h        *harness.Harness
	ssc      *dstream.StreamingContext
	mu       sync.Mutex
	notes    []string
	done     []dstream.Progress
}

func (w *world) life(job dstream.Job, opts ...dstream.ContextOption) *life {
	return w.begin(time.Second, w.stored(), job, opts)
}

// lifeEvery is life with another interval.
func (w *world) lifeEvery(d time.Duration, job dstream.Job, opts ...dstream.ContextOption) *life {
	return w.begin(d, w.stored(), job, opts)
}

// lifeAt is life with its checkpoint in a folder of the disk.
func (w *world) lifeAt(dir string, job dstream.Job, opts ...dstream.ContextOption) *life {
	return w.begin(time.Second, dstream.WithCheckpoint(dir, dstream.SnapshotEvery(3)), job, opts)
}

func (w *world) stored() dstream.ContextOption {
	w.lives++
	store, err := vfs.NewDir(w.fs, w.dir, fmt.Sprint("life", w.lives))
	require.NoError(w, err)
	return dstream.WithCheckpointStore(store, dstream.SnapshotEvery(3))
}

func (w *world) begin(interval time.Duration, checkpoint dstream.ContextOption, job dstream.Job, opts []dstream.ContextOption) *life {
	l := &life{w: w, interval: interval, clock: clock.NewManual(w.now), h: harness.New()}
	w.last = l
	l.h.RetryAtOnce()
	l.h.MaintainInline()
	base := []dstream.ContextOption{
		dstream.WithClock(l.clock), dstream.WithHarness(l.h), dstream.WithParallelism(2), dstream.WithOutput(discard{}), checkpoint,
		dstream.WithListener(dstream.Listener{
			BatchCompleted: func(p dstream.Progress) { l.mu.Lock(); defer l.mu.Unlock(); l.done = append(l.done, p) },
			Notice:         func(n dstream.Notice) { l.mu.Lock(); defer l.mu.Unlock(); l.notes = append(l.notes, n.Text) },
		}),
	}
	l.ssc = dstream.NewStreamingContext(interval, append(base, opts...)...)
	require.NoError(w, job(l.ssc))
	return l
}

// text is all notices.
func (l *life) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.notes, "\n")
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// tick runs n ticks; the error is that of the run's end.
func (l *life) tick(n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for range n {
		l.clock.Advance(l.interval)
		zero := l.h.Engine().ZeroTime()
		due := zero.Add(l.clock.Now().Sub(zero) / l.interval * l.interval)
		if err := l.h.WaitTick(ctx, due); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) stop() error {
	l.w.now = l.clock.Now()
	return l.ssc.Stop(context.Background())
}

// state is the committed state of an operator.
func state[K comparable, S any](t testing.TB, l *life, op string) map[K]S {
	got, err := l.h.Engine().State(op)
	require.NoError(t, err)
	out := map[K]S{}
	for _, r := range got.([]harness.StateRow[K, S]) {
		out[r.Key] = r.State
	}
	return out
}

// once runs a whole life of n ticks, which must be a good one, and gives the state.
func (w *world) once(n int, job dstream.Job, opts ...dstream.ContextOption) map[string]int {
	l := w.life(job, opts...)
	require.NoError(w, l.ssc.Start())
	require.NoError(w, l.tick(n))
	got := state[string, int](w, l, "counts")
	require.NoError(w, l.stop())
	return got
}

// count is the spec of a count.
func count() dstream.StateSpec[string, int, int, word] {
	return dstream.Function(func(w string, one dstream.Option[int], s *dstream.State[int]) word {
		if s.IsTimingOut() {
			return dstream.KV(w, -s.Get())
		}
		s.Update(s.OrElse(0) + one.OrElse(0))
		return dstream.KV(w, s.Get())
	}).Named("counts").NumPartitions(2)
}
