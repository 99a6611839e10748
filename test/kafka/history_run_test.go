package kafkatest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// history is one run of a plan.
type history struct {
	*rig
	all     *tally
	random  *rand.Rand // for what the machine decides: which unsynced bytes survive
	brokers historyBrokers
	disk    *vfs.Mem // nil: objects
	objects *vfs.Objects
	patient time.Duration

	in, table, out, changes string
	model                   historyModel
	numbers                 int
	partitions              int
	open                    map[int]*transaction
	lives                   int
	now                     *historyLife
	asleep                  *historyLife
	wake                    *vfs.Freezer

	mu      sync.Mutex
	durable map[string]int64
	read    map[string]bool // records by "partition@offset"
}

// historyBrokers is what can be done to a cluster.
type historyBrokers interface {
	compact()
	move(topic string, partition int, to uint64) bool // false: it leads already
	coordinators()
	kill(topic string, partition int) error
	start() error
}

// transaction is one that is open.
type transaction struct {
	client  *kgo.Client
	written []*written
}

// run does the steps and then holds what came out against the model.
func (h *history) run(steps []step) {
	h.durable, h.open, h.partitions = map[string]int64{}, map[int]*transaction{}, historyPartitions
	if h.disk != nil {
		require.NoError(h, h.disk.MkdirAll("/history"))
		require.NoError(h, h.disk.SyncDir("/"))
	}
	// A row that nothing replaces: in the process, compaction moves a log's begin to the
	// first record that is left.
	first := &kgo.Record{Topic: h.table, Key: []byte("first"), Value: h.number()}
	first.Headers = []kgo.RecordHeader{{Key: "n", Value: first.Value}}
	cl := h.client()
	h.write(cl, []*kgo.Record{first}, committed)
	cl.Close()
	h.now = h.live(false)
	for _, s := range steps {
		h.reap()
		h.do(s)
	}
	h.awaitAll()
	for {
		from := h.now.seen()
		h.until("a last batch", func() bool { return h.now.seen() > from })
		if h.stop() {
			break
		} // it died on the way, and the next one lives
	}
	h.check()
}

// happened counts what was done.
func (h *history) happened(kind string) { h.all.happened[kind]++ }

func (l *historyLife) seen() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs
}

func (h *history) check() {
	require.NoError(h, h.settle(h.ctx))
	texts := func(topic string) (lines []string) {
		for _, x := range h.otherRead(topic) {
			lines = append(lines, string(x.Value))
		}
		return lines
	}
	want := h.model.totals()
	if !maps.Equal(want, h.now.totals) {
		h.explain()
	}
	require.Equal(h, want, h.now.totals, "the state")
	require.Equal(h, h.model.last(), h.now.table, "the table")
	h.requireTotals(want, texts(h.out))
	h.model.requireTable(h.rig, texts(h.changes))
	require.LessOrEqual(h, h.groupOffset(h.in, h.in), h.positions()[h.in+"-0"], "the group is never ahead")
}

// explain tells which records the job has read though it must not, and which it has
// not read though another client does.
func (h *history) explain() {
	there := map[string]bool{}
	for _, x := range h.otherRead(h.in) {
		there[fmt.Sprintf("%d@%d", x.Partition, x.Offset)] = true
	}
	for _, w := range h.model.counted {
		at := fmt.Sprintf("%d@%d", w.record.Partition, w.record.Offset)
		if h.read[at] != (w.fate == committed) {
			h.Logf("record %s, key %s: fate %d, read by the job %t, by another client now %t", at, w.record.Key, w.fate, h.read[at], there[at])
		}
	}
}

// reap sees to a process that has ended, as it was to.
func (h *history) reap() {
	l := h.now
	select {
	case <-l.died:
		l.cancel()
		h.ended(<-l.done)
	case err := <-l.done:
		h.ended(err)
	default:
	}
}

// ended begins a new life after a death.
func (h *history) ended(err error) {
	l := h.now
	require.True(h, l.armed && l.faults.Hits() > 0, "life %d ends by itself: %v", h.lives, err)
	h.happened("crash")
	l.cancel()
	l.cut()
	if h.disk != nil {
		h.disk = h.disk.CrashClone(h.random, 50)
	}
	h.now = h.live(false)
}

// until waits for a condition, and keeps the job alive.
func (h *history) until(what string, done func() bool) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		h.reap()
		select {
		case <-tick.C:
		case <-h.ctx.Done():
			h.Fatalf("%s does not come", what)
		}
	}
}

// awaitAll waits for what is in transactions too that have just ended. All brokers must
// be up.
func (h *history) awaitAll() {
	require.NoError(h, h.settle(h.ctx))
	h.await()
}

// await waits until all that is decided is durable.
func (h *history) await() {
	for _, topic := range []string{h.in, h.table} {
		ends := h.bounds(h.ctx, topic)
		h.until("the end of "+topic, func() bool {
			at := h.positions()
			for p, end := range ends {
				if at[fmt.Sprintf("%s-%d", topic, p)] < end {
					return false
				}
			}
			return true
		})
	}
}

// stop ends the job in order; false if it died on the way.
func (h *history) stop() bool {
	h.now.cancel()
	err := <-h.now.done
	if err == nil {
		h.now.cut()
		return true
	}
	h.now.done <- err
	h.reap()
	return false
}

// do does a step. Kinds for which there may be nothing to do count themselves what
// happens.
func (h *history) do(s step) {
	switch s.kind {
	case "crash", "trim", "lose", "sleep", "wake", "stop", "move", "compact":
	default:
		defer h.happened(s.kind)
	}
	switch s.kind {
	case "write":
		cl := h.client()
		h.write(cl, h.counted(s), committed)
		cl.Close()
	case "table":
		cl := h.client()
		h.write(cl, h.rows(s), committed)
		cl.Close()
	case "txn", "begin":
		h.begin(s)
		if s.kind == "txn" {
			h.end(s)
		}
	case "end":
		h.end(s)
	case "trim":
		if at := h.positions()[fmt.Sprintf("%s-%d", h.in, s.partition)]; at > h.listOffsets(h.ctx, h.in, -2)[int32(s.partition)] {
			h.expireIn(h.in, int32(s.partition), at)
			h.happened(s.kind)
		}
	case "lose":
		h.lose(s)
	case "grow":
		h.partitions++
		h.grow(h.in, h.partitions)
	case "cut":
		h.now.cut()
	case "move":
		if h.brokers.move([]string{h.in, h.table, h.out, h.changes}[s.data%4], s.partition, s.data) {
			h.happened(s.kind)
		}
	case "coordinators":
		h.brokers.coordinators()
	case "compact":
		h.brokers.compact()
	case "restart":
		require.NoError(h, h.brokers.kill(h.in, s.partition))
		require.NoError(h, h.brokers.start())
	case "kill":
		require.NoError(h, h.brokers.kill([]string{h.in, h.out}[s.data%2], s.partition%2))
	case "start":
		require.NoError(h, h.brokers.start())
	case "crash":
		if h.now.armed {
			return
		}
		h.now.arm(s.calls, s.yes)
		if l := h.now; s.data%2 == 0 {
			h.until("the death of a process", func() bool { return h.now != l })
		}
	case "stop":
		if h.stop() {
			h.happened(s.kind)
			h.now = h.live(false)
		}
	case "sleep":
		h.sleep(s)
	case "wake":
		h.wakeUp()
	case "await":
		h.await()
	default:
		h.Fatalf("no step %q", s.kind)
	}
}

// sleep lets the process fall asleep at a call, and another one takes over.
func (h *history) sleep(s step) {
	if h.now.armed {
		return
	}
	l := h.now
	z := l.faults.Freeze(vfs.Rule{K: s.calls})
	select {
	case <-z.Reached():
	case err := <-l.done:
		h.Fatalf("life %d ends by itself: %v", h.lives, err)
	case <-h.ctx.Done():
		h.Fatal("no call to sleep at")
	}
	h.happened(s.kind)
	h.asleep, h.wake = l, z
	h.now = h.live(false)
}

// wakeUp lets the sleeper go on. One of the two runs must find out that it is the
// older one: the sleeper, unless it fell asleep before it had said that it runs.
func (h *history) wakeUp() {
	if h.asleep == nil {
		return
	}
	older := func(err error) bool {
		return errors.Is(err, checkpoint.ErrNotOwner) || errors.Is(err, sink.ErrNotOwner)
	}
	h.wake.Thaw()
	for h.asleep != nil {
		select {
		case err := <-h.asleep.done:
			require.True(h, older(err), "an old run ends with %v", err)
			h.Logf("the run that slept ends: %v", err)
			h.asleep.cut()
			h.asleep = nil
			h.happened("wake")
		case err := <-h.now.done:
			if older(err) {
				h.Logf("the run that did not sleep, life %d, ends: %v", h.lives, err)
				h.now.cut()
				h.now, h.asleep = h.asleep, nil
				h.happened("wake")
			} else {
				h.ended(err)
			}
		case <-h.now.died:
			h.reap()
		case <-h.ctx.Done():
			h.Fatal("two runs go on side by side")
		}
	}
}

// lose stops the job, and retention takes some records that it has not read. The next
// run says so and stops; one that may goes on behind them.
func (h *history) lose(s step) {
	h.awaitAll()
	for !h.stop() {
		h.awaitAll()
	}
	at, planned := h.positions()[fmt.Sprintf("%s-%d", h.in, s.partition)]
	if !planned { // a partition that no run has seen begins where it begins
		h.now = h.live(false)
		return
	}
	cl := h.client()
	h.write(cl, h.counted(s), committed)
	cl.Close()
	var first int64
	n := 0
	for _, w := range h.model.counted { // half of those of the partition
		if x := w.record; x.Partition == int32(s.partition) && x.Offset >= at {
			n++
		}
	}
	for _, w := range h.model.counted {
		if x := w.record; x.Partition == int32(s.partition) && x.Offset >= at {
			if n -= 2; n <= 0 {
				first = x.Offset
				break
			}
			w.fate = lost
		}
	}
	if first <= at { // too few for a loss
		h.now = h.live(false)
		return
	}
	h.expireIn(h.in, int32(s.partition), first)
	end := h.listOffsets(h.ctx, h.in, -1)[int32(s.partition)]
	stops := h.live(false)
	var err error
	select {
	case err = <-stops.done:
	case <-h.ctx.Done():
		stops.cancel()
		h.Fatal("no run tells of a loss")
	}
	stops.cut()
	var gone *kafka.OffsetRangeError
	require.ErrorAs(h, err, &gone)
	require.Equal(h, kafka.OffsetRangeError{Topic: h.in, Partition: int32(s.partition), Wanted: at, Earliest: first, Latest: end}, *gone)
	h.happened(s.kind)
	h.now = h.live(true)
	h.await()
}
