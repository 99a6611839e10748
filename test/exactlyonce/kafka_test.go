package exactlyonce

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/kafka/embedded"
	"github.com/statemill/statemill/milltool"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// The tests of this file run the same jobs with a sink that speaks Kafka's protocol to
// a broker: q.

func (w *world) startBroker() {
	b, err := embedded.Start(embedded.Topic("queue", 2))
	require.NoError(w, err)
	w.Cleanup(b.Close)
	w.broker = b
}

// queue writes the totals to the topic.
func (l *life) queue(totals *dstream.DStream[string]) {
	u := kafka.NewSink("q", kafka.Brokers(l.w.broker.Addr()), kafka.RetryFor(50*time.Millisecond),
		kafka.Dialer(&kafkago.Dialer{DialFunc: l.dial}))
	dstream.Output(totals, "queue", kafka.To(u, "queue", func(text string) (kafka.Message, error) {
		return kafka.Message{Key: []byte(text[:1]), Value: []byte(text)}, nil
	}))
}

// epochOf tells where in the script a total belongs.
var epochOf = map[string]int{"a=1": 1, "a=2": 1, "b=1": 1, "c=1": 2, "a=3": 4, "b=2": 4, "c=2": 4, "d=1": 4}

// queued is what a reader of committed records sees.
func (w *world) queued() (list []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	src := kafka.NewSource(kafka.Brokers(w.broker.Addr()), kafka.Topics("queue"), kafka.FromEarliest())
	require.NoError(w, src.Open(ctx, nil))
	defer src.Close()
	plan, err := src.Plan(ctx, source.Limits{})
	require.NoError(w, err)
	for _, x := range plan.Ranges {
		require.NoError(w, src.Read(ctx, x, func(_ int64, m kafka.Record) error {
			total, _, _ := strings.Cut(m.Text(), " ")
			list = append(list, fmt.Sprintf("q %d queue %s", epochOf[total], m.Text()))
			return nil
		}))
	}
	slices.Sort(list)
	return list
}

// dial makes connections whose requests pass the faults of the life.
func (l *life) dial(ctx context.Context, network, addr string) (c net.Conn, err error) {
	err = vfs.Inject(l.in, vfs.Call{Kind: vfs.KindOther, Path: "kafka/dial"}, func() error {
		c, err = (&net.Dialer{}).DialContext(ctx, network, addr)
		return err
	})
	if err != nil {
		if c != nil {
			c.Close()
		}
		return nil, err
	}
	return &conn{Conn: c, in: l.in}, nil
}

// conn is a connection of which each request may be lost, or its answer.
type conn struct {
	net.Conn
	in   vfs.Injector
	deaf error
}

func (c *conn) Write(p []byte) (n int, err error) {
	sent := false
	lost := vfs.Inject(c.in, vfs.Call{Kind: vfs.KindOther, Path: "kafka/request", Bytes: len(p)}, func() error {
		sent = true
		n, err = c.Conn.Write(p)
		return err
	})
	switch {
	case lost == nil:
		return n, err
	case !sent || err != nil:
		c.Conn.Close()
		return n, lost
	}
	// It arrives and is done before the answer is lost.
	var b [4]byte
	_ = c.Conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	_, _ = c.Conn.Read(b[:])
	c.deaf = lost
	c.Conn.Close()
	return len(p), nil
}

func (c *conn) Read(p []byte) (int, error) {
	if c.deaf != nil {
		return 0, c.deaf
	}
	return c.Conn.Read(p)
}

// A power cut before or after every call, those to Kafka among them: each total is in
// the topic once.
func TestKafkaCrashAtEveryCall(t *testing.T) {
	step, calls := 1, 0
	if testing.Short() {
		step = 17
	}
	for at := 1; ; at += step {
		w := newWorld(t, "bq", true)
		in := &vfs.Faults{}
		in.Fail(vfs.Rule{K: at, After: at%2 == 0, Dead: true})
		err := w.life(in).run()
		if in.Hits() == 0 {
			require.NoError(t, err)
			break
		}
		require.Error(t, err, "call %d", at)
		calls++
		w.crash(uint64(at), at%2*50)
		require.NoError(t, w.life(nil).run(), "call %d", at)
		require.Equal(t, wanted("bq"), w.sees(), "call %d", at)
	}
	require.Greater(t, calls, 10)
	t.Log(calls, "crashes")
}

// An older run sleeps before calls, those to Kafka among them, and wakes up when a
// newer one has done everything.
func TestKafkaZombies(t *testing.T) {
	zombies(t, "bq", 1, nil, func(w *world, what string, newer error) {
		require.NoError(t, newer, what)
		require.Equal(t, wanted("bq"), w.sees(), what)
	})
}

// The same with a function that comes out another way in each life.
func TestKafkaZombieWithOtherOutput(t *testing.T) { zombies(t, "aq", 2, byLife, oneAttempt(t)) }

// A function with chance in it, or a changed program, dead after each sink's commit and
// everywhere else: an epoch that one sink has is refused or accepted, never mixed.
func TestKafkaDifferentRedo(t *testing.T) { differentRedo(t, "aqb", 2) }

// Only Kafka: its epoch is out or not, whatever the function gives the next time.
func TestKafkaAloneIsNeverRefused(t *testing.T) {
	for at := 1; ; at += 2 {
		w := newWorld(t, "q", false)
		w.tag = byLife
		in := &vfs.Faults{}
		in.Fail(vfs.Rule{K: at, After: at%4 == 1, Dead: true, Path: "kafka/*"})
		if w.life(in).run() == nil {
			require.Greater(t, at, 20)
			return
		}
		w.crash(0, 0)
		require.NoError(t, w.life(nil).run(), "call %d", at)
		require.NoError(t, w.agree(), "call %d", at)
		require.Equal(t, wanted("q"), sorted(strings.NewReplacer(" life 1", "", " life 2", "").Replace(w.sees())), "call %d", at)
	}
}

// A checkpoint that was set back is refused by what Kafka remembers, and the topic
// stays as it is; a new one has another root id, and starts anew behind the old.
func TestKafkaRootSetBackAndNew(t *testing.T) {
	w := newWorld(t, "q", false)
	require.NoError(t, w.life(nil).runTo(1))
	backup := w.root()
	w.later()
	require.NoError(t, w.life(nil).run())
	w.restore(backup)
	w.later()
	err := w.life(nil).run()
	var e *checkpoint.MemoryError
	require.ErrorAs(t, err, &e)
	require.True(t, errors.Is(err, checkpoint.ErrRefused))
	require.Equal(t, wanted("q"), w.sees())
	w.restore(nil)
	w.later()
	require.NoError(t, w.life(nil).run())
	require.Equal(t, sorted(wanted("q")+"\n"+wanted("q")), w.sees())
}

// A changed program that counts otherwise, so that state and output differ: both sinks
// show the same attempt of every epoch, or the start is refused and the old program
// ends what it began.
func TestKafkaChangedProgram(t *testing.T) {
	refused, finished := 0, 0
	for at := 1; ; at++ {
		w := newWorld(t, "aq", false)
		w.grow = func(life int) int { return life }
		in := &vfs.Faults{}
		in.Fail(vfs.Rule{K: at, After: at%2 == 0, Dead: true})
		if w.life(in).run() == nil {
			break
		}
		w.crash(0, 0)
		err := w.life(nil).run()
		if err != nil {
			require.ErrorIs(t, err, checkpoint.ErrRedoDiffers, "call %d", at)
			refused++
			w.later()
			w.grow = nil
			require.NoError(t, w.life(nil).run(), "call %d", at)
			require.Equal(t, sorted(wanted("aq")), sorted(w.sees()), "call %d", at)
			continue
		}
		finished++
		var a, q []string
		for _, line := range strings.Split(w.sees(), "\n") {
			f := strings.Fields(line)
			switch {
			case strings.HasPrefix(line, "q"):
				q = append(q, f[len(f)-1])
			case strings.Contains(line, "totals"):
				a = append(a, f[len(f)-1])
			}
		}
		require.ElementsMatch(t, a, q, "call %d", at)
		require.Len(t, q, 8, "call %d", at)
	}
	require.Positive(t, refused)
	require.Positive(t, finished)
	t.Log("refused", refused, "finished", finished)
}

// A fork has another root id: what it writes of epochs that the old root has written
// too is there twice, and neither disturbs the other.
func TestKafkaFork(t *testing.T) {
	w := newWorld(t, "q", true)
	require.NoError(t, w.life(nil).run())
	w.later()
	var said strings.Builder
	require.Equal(t, milltool.ExitOK, milltool.Run(t.Context(), milltool.Env{
		Args: []string{"fork", "-version", "2", "/w/ckpt", "/w/fork"}, FS: w.disk, Stderr: &said,
		Now: func() int64 { return w.now.UnixNano() }, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		ID: func() string { return "forked" },
	}), "%s", &said)
	w.later()
	w.folder = "fork"
	require.NoError(t, w.life(nil).run())
	var again []string
	for _, line := range strings.Split(wanted("q"), "\n") {
		if strings.HasPrefix(line, "q 4") {
			again = append(again, line)
		}
	}
	both := sorted(wanted("q") + "\n" + strings.Join(again, "\n"))
	require.Equal(t, both, w.sees())
	for _, folder := range []string{"ckpt", "fork"} {
		w.later()
		w.folder = folder
		require.NoError(t, w.life(nil).run(), folder)
		require.Equal(t, both, w.sees(), folder)
	}
}
