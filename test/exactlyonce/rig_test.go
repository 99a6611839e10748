package exactlyonce

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/internal/oracle"
	"github.com/statemill/statemill/kafka/embedded"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/sinktest"
	"github.com/statemill/statemill/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is the input; there is an epoch without records, so without output.
var script = [][]string{{"a", "b", "a"}, {"c"}, {}, {"b", "c", "d", "a"}}

var zero = time.Unix(1_000_000, 0)

// world is what survives processes: a disk or an object store, and a Kafka.
type world struct {
	testing.TB
	disk    *vfs.Mem // nil: objects
	objects *vfs.Objects
	kafka   *sinktest.Server
	kinds   string           // which sinks the job has: "a", "b", "k", "q"; "c": it counts
	broker  *embedded.Broker // for q
	// tag is what the job's function adds to its output, by life.
	tag   func(life int) string
	other func(l *life, tag string) // the job, if it is not the one below
	// grow is how much a word adds to its count, by life; nil is 1.
	grow   func(life int) int
	folder string // the checkpoint's folder
	lives  int
	now    time.Time
	calls  map[string]int // of the job's function, by life, epoch's record and word
	mu     sync.Mutex
}

func newWorld(t testing.TB, kinds string, disk bool) *world {
	w := &world{TB: t, kafka: sinktest.NewServer(sinktest.Kafka), kinds: kinds, now: zero, folder: "ckpt"}
	if disk {
		w.disk = vfs.NewMem()
		require.NoError(t, w.disk.MkdirAll("/w"))
		require.NoError(t, w.disk.SyncDir("/"))
	} else {
		w.objects = vfs.NewObjects()
	}
	if strings.Contains(kinds, "q") {
		w.startBroker()
	}
	return w
}

// store is a folder of the world as a process sees it.
func (w *world) store(folder, tag string, in vfs.Injector) vfs.Store {
	if w.disk == nil {
		s := vfs.Store(prefixed{w.objects, folder + "/"})
		if in != nil {
			s = vfs.WithStoreFaults(s, in)
		}
		return s
	}
	fsys := vfs.FS(w.disk)
	if in != nil {
		fsys = vfs.WithFaults(fsys, in)
	}
	d, err := vfs.NewDir(fsys, "/w/"+folder, tag)
	require.NoError(w, err)
	return d
}

// prefixed is a folder of an object store.
type prefixed struct {
	*vfs.Objects
	prefix string
}

// life is one process.
type life struct {
	w     *world
	n     int
	in    *vfs.Faults
	clock *clock.Manual
	h     *harness.Harness
	ssc   *dstream.StreamingContext
	mu    sync.Mutex
	epoch uint64 // newest that was committed or found
	note  []string
}

func (w *world) life(in *vfs.Faults, opts ...dstream.ContextOption) *life {
	if in == nil {
		in = &vfs.Faults{}
	}
	w.lives++
	l := &life{w: w, n: w.lives, in: in, clock: clock.NewManual(w.now), h: harness.New()}
	l.h.RetryAtOnce()
	l.h.MaintainInline()
	tag := fmt.Sprint("life", l.n)
	base := []dstream.ContextOption{
		dstream.WithClock(l.clock), dstream.WithHarness(l.h), dstream.WithParallelism(1), dstream.WithIORetry(0),
		dstream.WithCheckpointStore(w.store(w.folder, tag, in), dstream.SnapshotEvery(2)),
		dstream.WithListener(dstream.Listener{
			BatchCompleted: func(p dstream.Progress) { l.at(p.Batch.Epoch) },
			Notice: func(n dstream.Notice) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.note = append(l.note, n.Text)
			},
		}),
	}
	l.ssc = dstream.NewStreamingContext(time.Second, append(base, opts...)...)
	l.job(tag)
	return l
}

func (l *life) at(epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch = max(l.epoch, epoch)
}

func (l *life) done(epochs int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch >= uint64(epochs)
}

func (w *world) script() *oracle.Script[string] {
	return &oracle.Script[string]{Batches: script, Partitions: 2}
}

// job counts words. Its totals go to sinks a and b, which are folders, and k, a
// Kafka; a takes the plain words too, and shows both in one act.
func (l *life) job(tag string) {
	if l.w.other != nil {
		l.w.other(l, tag)
		return
	}
	words := dstream.From(l.ssc, "words", l.w.script())
	ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
	counts := dstream.MapWithState(ones, dstream.Function(
		func(w string, one dstream.Option[int], s *dstream.State[int]) dstream.Pair[string, int] {
			if l.w.grow != nil {
				one = dstream.Some(one.OrElse(0) * l.w.grow(l.n))
			}
			s.Update(s.OrElse(0) + one.OrElse(0))
			return dstream.KV(w, s.Get())
		}).Named("counts").NumPartitions(2))
	if strings.Contains(l.w.kinds, "c") {
		l.count(words)
	}
	totals := dstream.Map(counts, func(p dstream.Pair[string, int]) string {
		text := fmt.Sprintf("%s=%d", p.Key, p.Value)
		if l.w.tag != nil {
			text += l.w.tag(l.n)
		}
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		if l.w.calls != nil {
			l.w.calls[fmt.Sprint(tag, " ", p.Key, p.Value)]++
		}
		return text
	})
	if strings.Contains(l.w.kinds, "a") {
		a := sink.NewFiles("a", l.w.store("out", tag, l.in))
		dstream.Output(totals, "totals", sink.Lines(a, sink.Text[string]))
		dstream.Output(words, "words", sink.Records(a, sink.Text[string]))
	}
	if strings.Contains(l.w.kinds, "k") {
		dstream.Output(totals, "topic", sink.Sink[string]{Unit: l.w.kafka.Unit("k", l.in), Target: "totals", Encode: sink.Text[string]})
	}
	if strings.Contains(l.w.kinds, "q") {
		l.queue(totals)
	}
	if strings.Contains(l.w.kinds, "b") {
		dstream.Output(totals, "more", sink.Lines(sink.NewFiles("b", l.w.store("out", tag, l.in)), sink.Text[string]))
	}
}

// run lives until all input is committed, or the process dies or must end.
func (l *life) run() error { return l.runTo(len(script)) }

func (l *life) runTo(epochs int) error {
	if err := l.ssc.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// An epoch that was found pending, or committed in vain, takes no tick.
	for range 2 * len(script) {
		if l.done(epochs) {
			return l.ssc.Stop(ctx)
		}
		l.clock.Advance(time.Second)
		if err := l.h.WaitTick(ctx, l.clock.Now()); err != nil {
			_ = l.ssc.Stop(ctx)
			return err
		}
	}
	return l.ssc.Stop(ctx)
}

// later moves the world's time beyond all lives.
func (w *world) later() { w.now = w.now.Add(time.Hour) }

// crash is a loss of power: of what was not synced each part is kept with the
// probability percent.
func (w *world) crash(seed uint64, percent int) {
	if w.disk != nil {
		w.disk = w.disk.CrashClone(rand.New(rand.NewPCG(seed, 1)), percent)
	}
	w.later()
}

// sees is what readers of all sinks see, a row a line.
func (w *world) sees() string {
	var list []string
	for _, name := range []string{"a", "b"} {
		if !strings.Contains(w.kinds, name) {
			continue
		}
		r, err := sink.OpenFiles(context.Background(), w.store("out", "reader", nil), name, "")
		require.NoError(w, err)
		for row, err := range r.Rows(context.Background()) {
			require.NoError(w, err)
			list = append(list, fmt.Sprintf("%s %d %s/%d %s", name, row.Epoch, row.Output, row.Partition, row.Data))
		}
	}
	var topic []string
	for _, row := range w.kafka.Rows() {
		topic = append(topic, fmt.Sprintf("k %d %s/%d %s", row.Epoch, row.Part.Output, row.Part.Index, row.Data))
	}
	slices.Sort(topic) // parts of an epoch come in any order
	list = append(list, topic...)
	if w.broker != nil {
		list = append(list, w.queued()...)
	}
	return strings.Join(list, "\n")
}

// sorted sorts lines.
func sorted(lines string) string {
	list := strings.Split(lines, "\n")
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// agree sees that all sinks show the same attempt of each epoch.
func (w *world) agree() error {
	lives := map[string]string{}
	for _, line := range strings.Split(w.sees(), "\n") {
		head, life, ok := strings.Cut(line, " life ")
		if !ok {
			continue
		}
		epoch := strings.Fields(head)[1]
		if old, ok := lives[epoch]; ok && old != life {
			return fmt.Errorf("epoch %s is of life %s and of life %s", epoch, old, life)
		}
		lives[epoch] = life
	}
	return nil
}
