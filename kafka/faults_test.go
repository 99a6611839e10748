package kafka

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// server runs one accept loop that gives each connection to f.
func server(t *testing.T, f func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// TestNoKafka: servers that are no Kafka, at all or today. Each is a clear error,
// in time, that names the broker.
func TestNoKafka(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody.Close()
	answer := func(s string) func(net.Conn) {
		return func(c net.Conn) {
			c.Read(make([]byte, 100))
			io.WriteString(c, s)
		}
	}
	for name, c := range map[string]struct {
		addr  string
		says  string
		alien bool
	}{
		"nobody listens": {nobody.Addr().String(), "connection refused", false},
		"no such host":   {"no-such-host.invalid:9092", "no-such-host.invalid", false},
		"a web server":   {server(t, answer("HTTP/1.1 400 Bad Request\r\n\r\n")), `"HTTP/1.1"`, true},
		"a mail server":  {server(t, answer("220\r\n")), `"220\r\n"`, true},
		"closes at once": {server(t, func(c net.Conn) {}), "", false}, // or resets it, as a broker may that goes down
		"closes after":   {server(t, answer("")), "it closed the connection", true},
		"never answers":  {server(t, func(c net.Conn) { io.Copy(io.Discard, c) }), "no answer within", false},
		"right id, no more": {server(t, func(c net.Conn) {
			c.Read(make([]byte, 100))
			c.Write([]byte{0x7f, 0, 0, 0, 0, 0, 0, 1})
		}), "impossible length", true},
	} {
		t.Run(name, func(t *testing.T) {
			began := clock.System().Now()
			s := NewSource(Brokers(c.addr), Topics("t"), RetryFor(200*time.Millisecond), RequestTimeout(200*time.Millisecond))
			err := s.Open(t.Context(), nil)
			require.ErrorContains(t, err, c.addr)
			require.ErrorContains(t, err, c.says)
			if c.alien {
				require.ErrorContains(t, err, "Kafka protocol")
			}
			require.Less(t, clock.System().Now().Sub(began), 5*time.Second)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.True(t, e.Permanent(), "a start is not tried for ever")
			require.NoError(t, s.Close())
		})
	}
}

// TestListenerWantsOther: what a listener does that wants SASL, or speaks no TLS, is told
// with what may be the matter.
func TestListenerWantsOther(t *testing.T) {
	b := newFake(t)
	b.log("t", 0)
	b.faults(3, 0, "close", 1000) // a broker that wants SASL answers for the versions alone
	err := made(b, RetryFor(0)).Open(t.Context(), nil)
	require.ErrorContains(t, err, "does its listener want TLS or SASL?")
	require.ErrorIs(t, err, io.EOF)
	for _, plain := range []string{server(t, func(c net.Conn) { io.Copy(io.Discard, c) }), server(t, func(c net.Conn) {})} {
		err = NewSource(Brokers(plain), Topics("t"), TLS(&tls.Config{}), RetryFor(0), RequestTimeout(50*time.Millisecond)).Open(t.Context(), nil)
		require.ErrorContains(t, err, "broker "+plain+": TLS handshake: ")
		require.ErrorContains(t, err, "does this listener speak TLS?")
	}
}

func TestMissingTopic(t *testing.T) {
	b := newFake(t)
	err := made(b, Topics("nothing")).Open(t.Context(), nil)
	require.ErrorIs(t, err, ErrNoTopic)
	require.ErrorContains(t, err, `topic "t"`)
	b.log("t", 0)
	err = made(b, Topics("nothing")).Open(t.Context(), nil)
	require.ErrorContains(t, err, `topic "nothing"`)
	err = made(b, FromOffsets(map[TopicPartition]int64{{"t", 5}: 1})).Open(t.Context(), nil)
	require.ErrorContains(t, err, "t-5, which does not exist")
}

func TestOffsetOutOfRange(t *testing.T) { // report 20
	b := newFake(t)
	l := b.log("t", 0)
	l.start, l.end, l.stable = 75033, 80000, 80000
	last := source.Plan{Ranges: []source.Range{{Partition: "t-0", From: 50000, Until: 50456}}}
	s := open(t, b, &last)
	p, err := s.Plan(t.Context(), source.Limits{})
	if err == nil {
		err = s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { t.Fatal("a record"); return nil })
	}
	var gone *OffsetRangeError
	require.ErrorAs(t, err, &gone)
	require.EqualValues(t, 24577, gone.Lost())
	require.True(t, gone.Permanent())
	for _, says := range []string{`topic "t" partition 0`, "offset 50456", "75033..80000", "24577 records", "FromOffsets"} {
		require.ErrorContains(t, err, says)
	}
	_, err = open(t, b, nil, FromOffsets(map[TopicPartition]int64{{"t", 0}: 7})).Plan(t.Context(), source.Limits{})
	require.ErrorAs(t, err, &gone)
}

func TestTopicMadeAgain(t *testing.T) { // report 22
	b := newFake(t)
	l := b.log("t", 0)
	l.end, l.stable = 500, 500
	last := source.Plan{Ranges: []source.Range{{Partition: "t-0", From: 400, Until: 500, Epoch: strings.Repeat("0", 31) + "1"}}}
	s := open(t, b, &last)

	l.end, l.stable = 10, 10 // a broker without ids: shorter than the position
	_, err := s.Plan(t.Context(), source.Limits{})
	require.ErrorContains(t, err, "offset 500 is beyond the end 10")
	require.ErrorContains(t, err, "was the topic recreated?")

	l.end, l.stable = 600, 600
	b.ids["t"] = 2
	var changed *source.ChangedError
	_, err = s.Plan(t.Context(), source.Limits{})
	require.ErrorAs(t, err, &changed)
	require.ErrorContains(t, err, "made again")
	require.ErrorAs(t, made(b).Open(t.Context(), &last), &changed)
}

// TestTopicMadeAgainOnOlderBrokers: those of Kafka 2.8 (and 3.0) tell ids in an older form
// of Metadata; those before tell none. // report 22
func TestTopicMadeAgainOnOlderBrokers(t *testing.T) {
	for version, tells := range map[uint16]bool{5: false, 9: false, 10: true, 11: true, 12: true} {
		b := newFake(t)
		b.metadatas = version
		b.log("t", 0, batchtest.Values(0, "a", "b"))
		s := open(t, b, nil)
		last, _ := readAll(t, s, source.Limits{})
		b.remove("t")
		b.log("t", 0, batchtest.Values(0, "c", "d", "e"))
		again := made(b)
		err := again.Open(t.Context(), &last)
		require.NoError(t, again.Close())
		if tells {
			require.ErrorAs(t, err, new(*source.ChangedError), "version %d", version)
			require.ErrorContains(t, err, "made again")
		} else {
			require.NoError(t, err)
			require.Empty(t, last.Ranges[0].Epoch)
		}
	}
}

// TestTopicMadeAgainInMidBatch: a topic that was made again after the plan, however short
// ago, and has the offsets of the plan, is found out before the batch is done. Those who
// lead what was read are asked once, after the last range.
func TestTopicMadeAgainInMidBatch(t *testing.T) { // report 22
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	b.log("t", 1, batchtest.Values(0, "b"))
	b.log("t", 2)
	s := open(t, b, nil, ReadAhead(0))
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	read := func(i int) error { return s.Read(t.Context(), p.Ranges[i], func(int64, Record) error { return nil }) }
	before := b.requests
	require.NoError(t, read(0))
	require.NoError(t, read(2))
	require.Equal(t, before+1, b.requests, "more is to come: that answers for this")
	require.NoError(t, read(1))
	require.Equal(t, before+3, b.requests)
	require.NoError(t, read(0))
	require.Equal(t, before+5, b.requests, "what is read again is asked for again")
	require.NoError(t, s.Committed(t.Context(), p))

	for _, again := range []int{0, 1} { // before the last read, and after it
		b.mu.Lock()
		b.ids["t"] = 1
		b.mu.Unlock()
		b.log("t", 0, batchtest.Values(0, "a", "c"))
		b.log("t", 1, batchtest.Values(0, "b", "d"))
		s := open(t, b, &p, ReadAhead(0))
		next, err := s.Plan(t.Context(), source.Limits{})
		require.NoError(t, err)
		p := next
		read := func(i int) error { return s.Read(t.Context(), p.Ranges[i], func(int64, Record) error { return nil }) }
		for i := range 2 {
			if i == again {
				b.mu.Lock()
				b.ids["t"] = 2
				b.mu.Unlock()
			}
			if err = read(i); i == 0 {
				require.NoError(t, err)
			}
		}
		require.ErrorAs(t, err, new(*source.ChangedError))
		require.ErrorContains(t, err, "made again")
		require.ErrorAs(t, read(0), new(*source.ChangedError), "nor does another try")
	}
}

// TestTopicDeletedAfterItWasRead: by choice, the batch that has read it stands.
func TestTopicDeletedAfterItWasRead(t *testing.T) {
	for _, on := range []bool{false, true} {
		b := newFake(t)
		b.log("t", 0, batchtest.Values(0, "a"))
		b.log("u", 0, batchtest.Values(0, "b"))
		opts := []SourceOption{Topics("u"), ReadAhead(0)}
		if on {
			opts = append(opts, ContinueOnLoss())
		}
		s := open(t, b, nil, opts...)
		p, err := s.Plan(t.Context(), source.Limits{})
		require.NoError(t, err)
		read := func(i int) error { return s.Read(t.Context(), p.Ranges[i], func(int64, Record) error { return nil }) }
		require.NoError(t, read(0))
		b.remove(partitionOf(p.Ranges[0].Partition).Topic)
		if err = read(1); on {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrNoTopic)
		}
	}
}

// TestRetries: what passes is tried again, at any place, and no record is lost or
// doubled.
func TestRetries(t *testing.T) {
	for name, fault := range map[string]func(key int16, n int) (int16, string){
		"not the leader": func(key int16, n int) (int16, string) {
			return map[bool]int16{true: 6}[key == 1 && n%3 == 0 || key == 2 && n%5 == 0], ""
		},
		"closed":           func(_ int16, n int) (int16, string) { return 0, map[bool]string{true: "close"}[n%4 == 3] },
		"half an answer":   func(_ int16, n int) (int16, string) { return 0, map[bool]string{true: "half"}[n%4 == 3] },
		"unknown topic":    func(key int16, n int) (int16, string) { return map[bool]int16{true: 3}[key == 1 && n%3 == 0], "" },
		"silent, sometime": func(_ int16, n int) (int16, string) { return 0, map[bool]string{true: "silent"}[n == 5] },
	} {
		t.Run(name, func(t *testing.T) {
			b := newFake(t)
			b.log("t", 0, batchtest.Values(0, "a", "b"), batchtest.Values(2, "c"), batchtest.Values(3, "d"))
			b.fault = fault
			s := open(t, b, nil, FetchMaxBytes(1<<10), RequestTimeout(50*time.Millisecond), RetryFor(3*time.Second))
			var all []string
			for range 3 {
				_, got := readAll(t, s, source.Limits{Records: 2})
				all = append(all, got...)
			}
			require.Equal(t, []string{"0@0=a", "0@1=b", "0@2=c", "0@3=d"}, all)
		})
	}
}

func TestRetriesEnd(t *testing.T) { // report 28
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	s := open(t, b, nil, RetryFor(100*time.Millisecond))
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	b.close()
	err = s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { return nil })
	var e *Error
	require.ErrorAs(t, err, &e)
	require.False(t, e.Permanent(), "the engine has a limit of its own")
	require.Greater(t, e.Tries, 1)
	for _, says := range []string{`topic "t" partition 0 offset 0`, b.addr(), "connection refused"} {
		require.ErrorContains(t, err, says)
	}
	var op *net.OpError
	require.ErrorAs(t, err, &op, "the cause is wrapped")
	_, err = s.Plan(t.Context(), source.Limits{})
	require.ErrorContains(t, err, "connection refused")
}

func TestFinalCodeIsNotTriedAgain(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	s := open(t, b, nil)
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	b.fault = func(key int16, _ int) (int16, string) { return map[bool]int16{true: 29}[key == 1], "" }
	b.fetches = 0
	err = s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { return nil })
	require.ErrorIs(t, err, kafkago.TopicAuthorizationFailed)
	require.Equal(t, 1, b.fetches)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Permanent())
}

// TestCancel: a broker that never answers does not hold up a stop. // report 27
func TestCancel(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	s := open(t, b, nil, RequestTimeout(time.Hour), RetryFor(time.Hour))
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	asked := make(chan struct{}, 10)
	b.fault = func(int16, int) (int16, string) { asked <- struct{}{}; return 0, "silent" }
	calls := map[string]func(ctx context.Context) error{
		"read": func(ctx context.Context) error {
			return s.Read(ctx, p.Ranges[0], func(int64, Record) error { return nil })
		},
		"plan": func(ctx context.Context) error { _, err := s.Plan(ctx, source.Limits{}); return err },
		"open": func(ctx context.Context) error { return made(b, RequestTimeout(time.Hour)).Open(ctx, nil) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error)
			go func() { failed <- call(ctx) }()
			<-asked
			cancel()
			require.ErrorIs(t, <-failed, context.Canceled)
		})
	}
}

func TestLargeRecord(t *testing.T) { // report 29
	big := strings.Repeat("x", 3<<20)
	for name, cut := range map[string]int{"the broker sends it whole": 0, "the broker cuts it": 1} {
		t.Run(name, func(t *testing.T) {
			b := newFake(t)
			b.cutTo = cut
			b.log("t", 0, batchtest.Values(0, "small"), batchtest.Values(1, big), batchtest.Values(2, "small too"))
			_, got := readAll(t, open(t, b, nil), source.Limits{})
			require.Equal(t, []string{"0@0=small", "0@1=" + big, "0@2=small too"}, got)
			s := open(t, b, nil, MaxBatchBytes(2<<20), FetchMaxBytes(1<<10))
			var got2 []string
			var err error
			for range 3 { // the plan or a read may meet it
				var p source.Plan
				if p, err = s.Plan(t.Context(), source.Limits{}); err == nil {
					err = s.Read(t.Context(), p.Ranges[0], func(_ int64, v Record) error { got2 = append(got2, v.Text()); return nil })
				}
				if err != nil {
					break
				}
			}
			require.ErrorIs(t, err, ErrTooLarge)
			var e *RecordError
			require.ErrorAs(t, err, &e)
			require.LessOrEqual(t, e.Offset, int64(1))
			require.True(t, e.Permanent())
			require.ErrorContains(t, err, "MaxBatchBytes")
		})
	}
}

func TestInflationNamesTheOffset(t *testing.T) { // report 29
	b := newFake(t)
	bomb := batchtest.Values(1, strings.Repeat("\x00", 4<<20))
	bomb.Codec = batchtest.Zstd
	b.log("t", 0, batchtest.Values(0, "small"), bomb)
	s := open(t, b, nil, MaxBatchBytes(1<<20))
	p, err := s.Plan(t.Context(), source.Limits{})
	if err == nil {
		err = s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { return nil })
	}
	var e *RecordError
	require.ErrorAs(t, err, &e)
	require.Equal(t, RecordError{"t", 0, 1, e.Err}, *e)
	require.ErrorIs(t, err, ErrTooLarge)
}

func TestOldFormatIsRefusedByName(t *testing.T) {
	b := newFake(t)
	old := batchtest.Values(0, "a").Append(nil)
	old[16] = 1
	l := b.log("t", 0)
	l.raw, l.end, l.stable = old, 1, 1
	s := open(t, b, nil)
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	err = s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { return nil })
	require.ErrorIs(t, err, ErrOldFormat)
	require.ErrorContains(t, err, `topic "t" partition 0 offset 0`)
	require.ErrorContains(t, err, "magic 1")
}

// TestLogEndsBeforeTheRange: a leader that does not know its end yet is waited for;
// records that were planned and are gone are an error, not an end.
func TestLogEndsBeforeTheRange(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a", "b"))
	s := open(t, b, nil)
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	l := b.log("t", 0, batchtest.Values(0, "a"))
	err = s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { return nil })
	require.ErrorContains(t, err, "the log ends at offset 1 now, before offset 2")
	n := 0
	b.fault = func(key int16, _ int) (int16, string) {
		if n++; key == 1 && n > 3 {
			l.batches, l.end, l.stable = []batchtest.Batch{batchtest.Values(0, "a", "b")}, 2, 2
		}
		return 0, ""
	}
	var got []string
	require.NoError(t, s.Read(t.Context(), p.Ranges[0], func(_ int64, v Record) error { got = append(got, v.Text()); return nil }))
	require.Equal(t, []string{"a", "b"}, got)
}

func TestEmitErrorComesBack(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	s := open(t, b, nil)
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	stop := errors.New("stop")
	require.Equal(t, stop, s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { return stop }))
}

// TestNothingIsPassedOverUnseen: an old message and a batch with a damaged header
// before good batches are errors, not holes.
func TestNothingIsPassedOverUnseen(t *testing.T) {
	long := strings.Repeat("x", 300)
	old := make([]byte, 400) // a message of format v1: offset, size, checksum, magic, attributes, time, null key
	binary.BigEndian.PutUint32(old[8:], 400-12)
	old[16] = 1
	copy(old[18:], "\x00\x00\x01\x9a\xff\xff\xff\xff\xff\xff\xff\xff")
	damaged := batchtest.Values(0, long).Append(nil)
	damaged[23] = 0xff // its last offset lies before its first
	short := batchtest.Values(0, "a", "b", long).Append(nil)
	short[26] = 0 // it ends at its first record
	for name, c := range map[string]struct {
		first []byte
		from  int64
		err   error
	}{
		"old format":           {old, 0, ErrOldFormat},
		"last before first":    {damaged, 0, ErrCorrupt},
		"last before position": {short, 2, ErrCRC},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFake(t)
			l := b.log("t", 0)
			l.raw, l.end, l.stable = batchtest.Values(3, "c", "d").Append(c.first), 5, 5
			s := open(t, b, nil, FromOffsets(map[TopicPartition]int64{{"t", 0}: c.from}))
			p, err := s.Plan(t.Context(), source.Limits{})
			require.NoError(t, err)
			var got []string
			err = s.Read(t.Context(), p.Ranges[0], func(_ int64, v Record) error { got = append(got, v.Text()); return nil })
			require.ErrorIs(t, err, c.err, "%v", got)
			require.Empty(t, got)
		})
	}
}
