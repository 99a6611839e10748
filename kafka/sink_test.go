package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// sinkOf is a sink with a door to topic "out", on a broker that has the topic.
func sinkOf(t *testing.T, opts ...SinkOption) (*fakeBroker, *Sink) {
	b := newFake(t)
	b.log("out", 0)
	b.log("out", 1)
	s := NewSink("s", append([]SinkOption{Brokers(b.addr()), RetryFor(200 * time.Millisecond), RequestTimeout(time.Second)}, opts...)...)
	s.Topic("out")
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return b, s
}

func fence(t *testing.T, s *Sink, root string) {
	t.Helper()
	require.NoError(t, s.Fence(t.Context(), sink.Fence{Root: root, Run: "r", Term: 1}))
}

// rowsOf are messages of a part.
func rowsOf(t *testing.T, messages ...Message) sink.Rows {
	return func(yield func(row []byte) error) error {
		for _, m := range messages {
			row, err := appendMessage(nil, m)
			require.NoError(t, err)
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}
}

func valued(values ...string) (out []Message) {
	for _, v := range values {
		out = append(out, Message{Value: []byte(v)})
	}
	return out
}

// begun is an open transaction with one row of part 0.
func begun(t *testing.T, s *Sink, epoch uint64, value string) sink.Tx {
	t.Helper()
	tx, err := s.Begin(t.Context(), epoch)
	require.NoError(t, err)
	require.NoError(t, tx.Write(t.Context(), sink.Part{Target: "out"}, rowsOf(t, valued(value)...)))
	return tx
}

func memory(epoch uint64) sink.Memory { return sink.Memory{Epoch: epoch, Term: 1} }

// TestSinkCommits: what an epoch writes is there with the memory, and not before.
func TestSinkCommits(t *testing.T) {
	b, s := sinkOf(t)
	fence(t, s, "root")
	_, ok, err := s.Memory(t.Context())
	require.NoError(t, err)
	require.False(t, ok)
	tx := begun(t, s, 1, "a")
	require.NoError(t, tx.Write(t.Context(), sink.Part{Target: "out", Index: 1}, rowsOf(t, valued("b")...)))
	require.NoError(t, tx.Write(t.Context(), sink.Part{Target: "out", Index: 2}, rowsOf(t, Message{Key: []byte("k"), Value: []byte("c")}, Message{Key: []byte("k")})))
	b.has(t, "out", 0)
	require.NoError(t, tx.Commit(t.Context(), memory(1)))
	require.ErrorIs(t, tx.Commit(t.Context(), memory(1)), sink.ErrMisuse, "it is over")
	require.NoError(t, tx.Abort(t.Context()), "it does nothing")
	b.has(t, "out", 0, "=a", "k=c", "k=") // murmur2("k") is even
	b.has(t, "out", 1, "=b")

	tx, err = s.Begin(t.Context(), 2)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context(), memory(2)), "without rows")
	fence(t, s, "root")
	m, ok, err := s.Memory(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, memory(2), m)
	begun(t, s, 3, "lost")
	fence(t, s, "root") // which aborts it
	tx = begun(t, s, 3, "d")
	require.NoError(t, tx.Commit(t.Context(), memory(3)))
	b.has(t, "out", 0, "=a", "k=c", "k=", "=d")
	require.Equal(t, "s", s.Name())
}

// TestSinkMisuse: each fault of the caller is told, and nothing is written.
func TestSinkMisuse(t *testing.T) {
	b, s := sinkOf(t)
	_, _, err := s.Memory(t.Context())
	require.ErrorIs(t, err, sink.ErrMisuse)
	_, err = s.Begin(t.Context(), 1)
	require.ErrorIs(t, err, sink.ErrMisuse)
	fence(t, s, "root")
	tx := begun(t, s, 5, "a")
	_, err = s.Begin(t.Context(), 6)
	require.ErrorContains(t, err, "begin of epoch 6 while epoch 5 is open")
	require.ErrorContains(t, tx.Commit(t.Context(), memory(6)), "cannot commit epoch 6")
	require.ErrorContains(t, tx.Write(t.Context(), sink.Part{Target: "nowhere"}, rowsOf(t)), `topic "nowhere" has no partitions`)
	err = tx.Write(t.Context(), sink.Part{Target: "out"}, func(yield func([]byte) error) error { return yield([]byte{0xff}) })
	require.ErrorIs(t, err, errRow)
	require.NoError(t, tx.Commit(t.Context(), memory(5)))
	tx = begun(t, s, 4, "b")
	var old *sink.EpochError
	require.ErrorAs(t, tx.Commit(t.Context(), memory(4)), &old)
	require.NoError(t, tx.Abort(t.Context()))
	b.has(t, "out", 0, "=a")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Begin(ctx, 7)
	require.ErrorIs(t, err, context.Canceled)
	tx = begun(t, s, 7, "c")
	require.ErrorIs(t, tx.Commit(ctx, memory(7)), context.Canceled)
	require.ErrorIs(t, tx.Write(ctx, sink.Part{Target: "out"}, rowsOf(t)), context.Canceled)
}

// TestSinkFaults: options, doors and topics that will not do are told by Fence.
func TestSinkFaults(t *testing.T) {
	b := newFake(t)
	f := sink.Fence{Root: "root"}
	s := NewSink("", nil)
	s.Topic("")
	err := s.Fence(t.Context(), f)
	for _, says := range []string{"the sink's name", "an option is nil", "no broker is named", `topic "": the name`} {
		require.ErrorContains(t, err, says)
	}
	s = NewSink("s", Brokers(b.addr()))
	require.ErrorContains(t, s.Fence(t.Context(), f), "no topic is named")
	s = NewSink("s", Brokers(b.addr()), RetryFor(10*time.Millisecond))
	s.Topic("nowhere")
	err = s.Fence(t.Context(), f)
	require.ErrorIs(t, err, ErrNoTopic)
	require.ErrorContains(t, err, `topic "nowhere"`)
	require.NoError(t, s.Close())

	b.log("out", 0)
	b.faults(3, 29, "", 1)
	s = NewSink("s", Brokers(b.addr()))
	s.Topic("out")
	require.ErrorContains(t, s.Fence(t.Context(), f), `topic "out"`)
	require.NoError(t, s.Close())
}

// TestSinkFaultsAreToldBeforeTheStart: with all other faults of the job, before anything
// is written or asked for.
func TestSinkFaultsAreToldBeforeTheStart(t *testing.T) {
	root := vfs.NewObjects()
	ssc := dstream.New(time.Second, dstream.WithCheckpointStore(root))
	in := dstream.From(ssc, "in", source.NewQueue(1, []string{"a"}))
	message := func(string) (Message, error) { return Message{}, nil }
	out := NewSink("out", Compress("zip"))
	dstream.Output(in, "one", To(out, "one", message))
	dstream.Output(in, "two", To(out, "two", message))
	dstream.Output(in, "no function", To[string](NewSink("b", Brokers("x:1")), "one", nil))
	dstream.Output(in, "no sink", To(nil, "one", message))
	err := ssc.Start()
	require.ErrorIs(t, err, dstream.ErrInvalid)
	for _, says := range []string{`kafka sink "out": `, "no broker is named", `Compress("zip")`, "the sink has no Encode function", "the sink has no unit"} {
		require.Equal(t, 1, strings.Count(err.Error(), says), "%s in %v", says, err)
	}
	require.Equal(t, vfs.NewObjects(), root, "untouched")
	require.False(t, passing(out.Validate()), "nor is it tried again by who fences without asking before")
}

// TestSinkAsksAgain: every request of an epoch is tried again where the answer may be
// another one, or was lost; what it writes is there once.
func TestSinkAsksAgain(t *testing.T) {
	names := map[int16]string{0: "Produce", 9: "OffsetFetch", 10: "FindCoordinator", 22: "InitProducerId", 24: "AddPartitions", 25: "AddOffsets", 26: "EndTxn", 28: "TxnOffsetCommit"}
	for key, name := range names {
		for what, fault := range map[string]struct {
			code int16
			act  string
		}{"moved": {16, ""}, "busy": {51, ""}, "lost": {0, "close"}, "half": {0, "half"}} {
			if what == "busy" && (key == 0 || key == 10) {
				continue
			}
			t.Run(name+" "+what, func(t *testing.T) {
				b, s := sinkOf(t)
				b.faults(key, fault.code, fault.act, 2)
				if what == "lost" || what == "half" {
					b.faults(key, fault.code, fault.act, 1)
				}
				fence(t, s, "root")
				_, _, err := s.Memory(t.Context())
				require.NoError(t, err)
				tx := begun(t, s, 1, "a")
				require.NoError(t, tx.Commit(t.Context(), memory(1)))
				tx = begun(t, s, 2, "b")
				require.NoError(t, tx.Commit(t.Context(), memory(2)))
				b.has(t, "out", 0, "=a", "=b")
			})
		}
	}
}

// TestSinkIsFenced: by each code that says so, at each request that can; the run must
// fence again to go on.
func TestSinkIsFenced(t *testing.T) {
	for _, code := range []wire.Error{wire.InvalidProducerEpoch, wire.ProducerFenced, wire.InvalidProducerMapping, wire.InvalidTxnState, wire.UnknownProducerID, wire.OutOfOrderSequence, wire.TransactionAbortable} {
		for _, key := range []int16{0, 24, 25, 26, 28} {
			t.Run(fmt.Sprintf("code %d key %d", int16(code), key), func(t *testing.T) {
				b, s := sinkOf(t)
				fence(t, s, "root")
				tx := begun(t, s, 1, "a")
				b.faults(key, int16(code), "", 1)
				err := tx.Commit(t.Context(), memory(1))
				require.ErrorIs(t, err, sink.ErrFenced)
				require.ErrorIs(t, err, code)
				require.ErrorContains(t, err, `kafka sink "s"`)
				require.ErrorIs(t, tx.Commit(t.Context(), memory(1)), sink.ErrFenced, "the hold is gone")
				require.NoError(t, tx.Abort(t.Context()))
				_, err = s.Begin(t.Context(), 1)
				require.ErrorIs(t, err, sink.ErrFenced)
				b.has(t, "out", 0)
				fence(t, s, "root")
				tx = begun(t, s, 1, "a")
				require.NoError(t, tx.Commit(t.Context(), memory(1)))
				b.has(t, "out", 0, "=a")
			})
		}
	}
}

// TestZombieSink: an older run of the root can do nothing more, whatever it was doing.
func TestZombieSink(t *testing.T) {
	b, old := sinkOf(t)
	fence(t, old, "root")
	tx := begun(t, old, 1, "old")
	young := NewSink("s", Brokers(b.addr()))
	young.Topic("out")
	defer young.Close()
	fence(t, young, "root")
	require.ErrorIs(t, tx.Commit(t.Context(), memory(1)), sink.ErrFenced)
	require.NoError(t, tx.Abort(t.Context()))
	now := begun(t, young, 1, "young")
	require.NoError(t, now.Commit(t.Context(), memory(1)))
	b.has(t, "out", 0, "=young")

	tx = begun(t, young, 2, "x")
	fence(t, young, "root")
	require.ErrorContains(t, tx.Write(t.Context(), sink.Part{Target: "out"}, rowsOf(t, valued("y")...)), "fenced after the transaction began")
}

// TestSinkAborts: what was written is not there; an abort that nobody hears is left to
// the next fence.
func TestSinkAborts(t *testing.T) {
	b, s := sinkOf(t, ProduceBatchBytes(1024))
	fence(t, s, "root")
	long := strings.Repeat("x", 700)
	tx := begun(t, s, 1, long)
	require.NoError(t, tx.Write(t.Context(), sink.Part{Target: "out"}, rowsOf(t, valued(long)...)), "the first one is sent")
	require.NoError(t, tx.Abort(t.Context()))
	require.NoError(t, tx.Abort(t.Context()))
	b.has(t, "out", 0)

	tx = begun(t, s, 1, long)
	require.NoError(t, tx.Write(t.Context(), sink.Part{Target: "out"}, rowsOf(t, valued(long)...)))
	b.faults(26, 29, "", 1)
	require.ErrorIs(t, tx.Abort(t.Context()), wire.Error(29))
	_, err := s.Begin(t.Context(), 1)
	require.ErrorIs(t, err, sink.ErrFenced)
	fence(t, s, "root")

	tx = begun(t, s, 1, long)
	require.NoError(t, tx.Write(t.Context(), sink.Part{Target: "out"}, rowsOf(t, valued(long)...)))
	b.faults(26, 47, "", 1)
	require.NoError(t, tx.Abort(t.Context()), "a newer run has")
}

// TestSinkGivesUp: after RetryFor, with what it did, and the cause.
func TestSinkGivesUp(t *testing.T) {
	b, s := sinkOf(t)
	fence(t, s, "root")
	for _, c := range []struct {
		key, code int16
		says      []string
	}{
		{0, 6, []string{"write", "bytes to out-0", "tried"}},
		{0, 10, []string{"the message of partition 0, row 0, of about 65 bytes, without a key", `topic "out"`, "max.message.bytes"}},
		{24, 15, []string{"begin to write to out-0"}},
		{25, 51, []string{"begin to write the memory"}},
		{28, 15, []string{"write the memory"}},
		{26, 51, []string{"commit epoch 1"}},
		{26, 29, []string{"commit epoch 1"}},
	} {
		tx := begun(t, s, 1, "a")
		b.faults(c.key, c.code, "", 1000)
		err := tx.Commit(t.Context(), memory(1))
		require.ErrorIs(t, err, wire.Error(c.code))
		for _, text := range append(c.says, `kafka sink "s"`) {
			require.ErrorContains(t, err, text)
		}
		b.faults(0, 0, "", 0)
		fence(t, s, "root")
	}
	b.faults(9, 88, "", 1000)
	_, _, err := s.Memory(t.Context())
	require.ErrorIs(t, err, sink.ErrFenced, "whoever has opened something since has fenced this run out")
	b.faults(22, 51, "", 1000)
	require.ErrorContains(t, s.Fence(t.Context(), sink.Fence{Root: "root", Run: "r", Term: 1}), "fence")
	b.close()
	require.ErrorContains(t, s.Fence(t.Context(), sink.Fence{Root: "root", Run: "r", Term: 1}), b.addr())
}

// TestForeignMemory: a group that somebody else has written to is no memory.
func TestForeignMemory(t *testing.T) {
	b, s := sinkOf(t)
	fence(t, s, "root")
	for _, text := range []string{"not json", `{"epoch":6}`} {
		b.mu.Lock()
		b.writes.put("statemill.root.s", map[TopicPartition]groupOffset{{"out", 0}: {7, text}})
		b.mu.Unlock()
		_, _, err := s.Memory(t.Context())
		require.ErrorContains(t, err, `group "statemill.root.s" remembers`)
		require.ErrorContains(t, err, "who else uses this group?")
		require.False(t, passing(err))
	}
	b.mu.Lock()
	b.writes.put("statemill.root.s", map[TopicPartition]groupOffset{{"out", 0}: {7, ""}, {"gone", 0}: {9, `{"epoch":9,"term":2}`}})
	b.mu.Unlock()
	m, ok, err := s.Memory(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 9, m.Epoch, "under a topic that the job does not write to any more")
}

// TestOtherRoots: a root that has nothing here yet is told who has.
func TestOtherRoots(t *testing.T) {
	b, s := sinkOf(t)
	var told []string
	f := sink.Fence{Root: "mine", Notice: func(text string) { told = append(told, text) }}
	require.NoError(t, s.Fence(t.Context(), f))
	require.Empty(t, told, "nobody")
	b.mu.Lock()
	for _, g := range []string{"statemill.b.s", "statemill.a.s", "statemill.c.other", "statemill..s", "statemill.x.y.s", "app", "else.d.s"} {
		b.writes.put(g, nil)
	}
	b.mu.Unlock()
	require.NoError(t, s.Fence(t.Context(), f))
	require.Len(t, told, 1)
	require.Contains(t, told[0], "starts anew for root mine")
	require.Contains(t, told[0], "of roots a, b, whose output stays")
	b.mu.Lock()
	for i := range 8 {
		b.writes.put(fmt.Sprintf("statemill.n%d.s", i), nil)
	}
	b.mu.Unlock()
	require.NoError(t, s.Fence(t.Context(), f))
	require.Contains(t, told[1], "a, b, n0, n1, n2 and 5 more")
	b.faults(16, 29, "", 1)
	require.NoError(t, s.Fence(t.Context(), f), "it is no reason to fail")
	require.Len(t, told, 2)
	b.faults(0, 0, "", 0)
	tx := begun(t, s, 1, "a")
	require.NoError(t, tx.Commit(t.Context(), memory(1)))
	require.NoError(t, s.Fence(t.Context(), f))
	require.Len(t, told, 2, "it goes on")
}

// TestDoors: rows become messages, and a function's error is the row's.
func TestDoors(t *testing.T) {
	_, s := sinkOf(t)
	door := To(s, "out", func(n int) (Message, error) {
		if n < 0 {
			return Message{}, errRow
		}
		return Message{Value: []byte{byte(n)}, Time: time.UnixMilli(5)}, nil
	})
	row, err := door.Encode(nil, 3)
	require.NoError(t, err)
	m, err := messageOf(row)
	require.NoError(t, err)
	require.Equal(t, Message{Value: []byte{3}, Time: time.UnixMilli(5).UTC()}, m)
	_, err = door.Encode(nil, -1)
	require.ErrorIs(t, err, errRow)
	require.ErrorContains(t, err, "the message of row -1: ")
	_, err = To(s, "out", func(string) (Message, error) { panic("oh") }).Encode(nil, strings.Repeat("é", 1000))
	require.ErrorContains(t, err, "the message of row éé")
	require.ErrorContains(t, err, "é …: panic: oh\n")
	require.ErrorContains(t, err, "TestDoors", "with the stack")
	require.False(t, passing(err))
	require.Equal(t, "out", door.Target)
}
