package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canned is a server that answers each request with the next of the bodies, behind
// the right correlation id.
func canned(t *testing.T, bodies ...[]byte) *Conn {
	client, server := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer server.Close()
		for _, body := range bodies {
			var head [4]byte
			if _, err := io.ReadFull(server, head[:]); err != nil {
				return
			}
			request := make([]byte, binary.BigEndian.Uint32(head[:]))
			if _, err := io.ReadFull(server, request); err != nil {
				return
			}
			answer := binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))
			answer = append(answer, request[4:8]...)
			if _, err := server.Write(append(answer, body...)); err != nil {
				return
			}
		}
		io.Copy(io.Discard, server)
	}()
	t.Cleanup(func() { client.Close(); <-done })
	return &Conn{addr: "test:1", timeout: time.Second, net: client, owner: client}
}

func TestVersions(t *testing.T) {
	c := canned(t, []byte{0, 35})
	require.ErrorIs(t, c.learn(t.Context()), kafkago.UnsupportedVersion)
	c = canned(t, []byte("garbage that is long enough"))
	var alien *AlienError
	require.ErrorAs(t, c.learn(t.Context()), &alien)
	c = canned(t, []byte{0, 0, 0, 0, 0, 1, 0, 1, 0, 12, 0, 17})
	require.NoError(t, c.learn(t.Context()))
	_, err := c.Fetch(t.Context(), FetchRequest{})
	require.ErrorContains(t, err, "versions 12 to 17 of Fetch, Statemill 4 to 11")
	_, err = c.Metadata(t.Context(), nil)
	require.ErrorContains(t, err, "Metadata")
	_, err = c.ListOffsets(t.Context(), Latest, true, nil)
	require.ErrorContains(t, err, "ListOffsets")
}

// answers are good answers to the three requests.
func answers() (metadata12, metadata5, offsets, fetch []byte) {
	be := binary.BigEndian
	metadata12 = append(metadata12, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 2, 'h', 0, 0, 0x23, 0x84, 0, 0, 0, 0, 0, 0, 1, 2,
		0, 0, 2, 't', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2,
		0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 5, 2, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1, 1, 7, 2, 'x', 'y', 0, 0, 0, 0, 0, 0)
	metadata5 = append(metadata5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 'h', 0, 0, 0x23, 0x84, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1,
		0, 0, 0, 1, 0, 0, 0, 1, 't', 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
	offsets = append(offsets, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 1, 0, 0, 0, 3, 0, 0)
	offsets = be.AppendUint64(offsets, 1<<64-1)
	offsets = be.AppendUint64(offsets, 77)
	fetch = append(fetch, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 1, 0, 0, 0, 3, 0, 0)
	fetch = be.AppendUint64(fetch, 10)
	fetch = be.AppendUint64(fetch, 9)
	fetch = be.AppendUint64(fetch, 2)
	fetch = be.AppendUint32(fetch, 1)
	fetch = be.AppendUint64(fetch, 4)
	fetch = be.AppendUint64(fetch, 6)
	fetch = append(fetch, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 3, 'a', 'b', 'c')
	return metadata12, metadata5, offsets, fetch
}

// committed is a good answer to OffsetCommit.
var committed = []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}

func TestOffsetCommit(t *testing.T) {
	offsets := []GroupOffset{{TopicPartition{"t", 0}, 7, ""}, {TopicPartition{"t", 1}, 8, "x"}, {TopicPartition{"u", 0}, 9, ""}}
	require.NoError(t, speaking(t, 5, committed).OffsetCommit(t.Context(), "g", offsets))
	refused := append([]byte{}, committed...)
	refused[len(refused)-1] = 25
	err := speaking(t, 5, refused).OffsetCommit(t.Context(), "g", offsets)
	require.ErrorIs(t, err, UnknownMember)
	require.ErrorContains(t, err, `topic "t" partition 1`)
	var some *RefusedError
	require.ErrorAs(t, err, &some)
	require.Equal(t, map[TopicPartition]Error{{"t", 1}: UnknownMember}, some.Codes)
	old := speaking(t, 5, committed[4:])
	old.versions[keyOffsetCommit] = [2]int16{0, 2} // without a throttle time
	require.NoError(t, old.OffsetCommit(t.Context(), "g", offsets))
	older := speaking(t, 5)
	older.versions[keyOffsetCommit] = [2]int16{0, 1}
	require.ErrorContains(t, older.OffsetCommit(t.Context(), "g", offsets), "OffsetCommit")
}

// TestClosedAtOnce: it may be a broker that goes down.
func TestClosedAtOnce(t *testing.T) {
	here, there := net.Pipe()
	c := &Conn{addr: "test:1", timeout: time.Second, net: here, owner: here}
	go func() {
		there.Read(make([]byte, 100))
		there.Close()
	}()
	err := c.learn(t.Context())
	var alien *AlienError
	require.ErrorAs(t, err, &alien)
	require.False(t, alien.Permanent())
	require.ErrorIs(t, err, io.EOF, "the cause")
	require.True(t, (&AlienError{}).Permanent())
}

// TestCancelledHandshake: a broker that is silent while it should authenticate does not
// hold up a stop. // report 27
func TestCancelledHandshake(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Read(make([]byte, 1000))
		cancel()
		io.Copy(io.Discard, c)
		c.Close()
	}()
	_, err = Dial(ctx, &kafkago.Dialer{SASLMechanism: plain.Mechanism{Username: "u", Password: "p"}}, l.Addr().String(), "test", time.Hour)
	require.ErrorIs(t, err, context.Canceled)
	l.Close()
	<-done
}

func TestAllTopics(t *testing.T) {
	m12, m5, _, _ := answers()
	for version, body := range map[int16][]byte{12: m12, 5: m5} {
		m, err := speaking(t, version, body).Metadata(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, m.Topics, 1)
		require.False(t, m.Topics[0].Internal)
	}
}

func speaking(t *testing.T, metadata int16, bodies ...[]byte) *Conn {
	c := canned(t, bodies...)
	c.versions = map[int16][2]int16{1: {4, 17}, 2: {1, 3}, 3: {0, metadata}, keyOffsetCommit: {2, 9}}
	return c
}

func TestGoodAnswers(t *testing.T) {
	m12, m5, offsets, fetch := answers()
	for version, body := range map[int16][]byte{13: m12, 5: m5, 9: m5} {
		m, err := speaking(t, version, body).Metadata(t.Context(), []string{"t"})
		require.NoError(t, err)
		require.Equal(t, map[int32]string{1: "h:9092"}, m.Brokers)
		require.Len(t, m.Topics, 1)
		require.Equal(t, "t", m.Topics[0].Name)
		require.Equal(t, []Partition{{Number: 3, Leader: 1}}, m.Topics[0].Partitions)
		if version == 13 {
			require.Equal(t, "00000000000000000000000000000009", m.Topics[0].ID)
		} else {
			require.Empty(t, m.Topics[0].ID)
		}
	}
	o, err := speaking(t, 5, offsets).ListOffsets(t.Context(), Latest, true, []TopicPartition{{"t", 3}, {"t", 4}, {"u", 0}})
	require.NoError(t, err)
	require.Equal(t, []OffsetAnswer{{TopicPartition{"t", 3}, 77, -1, nil}}, o)
	a, err := speaking(t, 5, fetch).Fetch(t.Context(), FetchRequest{TopicPartition: TopicPartition{"t", 3}, MaxAnswer: 1000})
	require.NoError(t, err)
	require.Equal(t, "abc", string(a.Batches))
	require.EqualValues(t, []int64{10, 9, 2}, []int64{a.HighWatermark, a.LastStable, a.LogStart})
	require.Len(t, a.Aborted, 1)
	require.Equal(t, 9*time.Millisecond, a.Throttle)
	a, err = speaking(t, 5, fetch).Fetch(t.Context(), FetchRequest{TopicPartition: TopicPartition{"t", 4}, MaxAnswer: 1000})
	require.NoError(t, err)
	require.True(t, a.Missing)
}

// TestCutAnswers: every answer cut at every byte is an error, and the connection is
// not used again.
func TestCutAnswers(t *testing.T) {
	m12, m5, offsets, fetch := answers()
	for name, c := range map[string]struct {
		version int16
		body    []byte
		call    func(c *Conn) error
	}{
		"metadata 12": {12, m12, func(c *Conn) error { _, err := c.Metadata(t.Context(), []string{"t"}); return err }},
		"metadata 5":  {5, m5, func(c *Conn) error { _, err := c.Metadata(t.Context(), []string{"t"}); return err }},
		"offsets":     {5, offsets, func(c *Conn) error { _, err := c.ListOffsets(t.Context(), Latest, false, nil); return err }},
		"commit":      {5, committed, func(c *Conn) error { return c.OffsetCommit(t.Context(), "g", nil) }},
		"fetch": {5, fetch, func(c *Conn) error {
			_, err := c.Fetch(t.Context(), FetchRequest{TopicPartition: TopicPartition{"t", 3}, MaxAnswer: 1000})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for n := range len(c.body) {
				conn := speaking(t, c.version, c.body[:n])
				err := c.call(conn)
				require.Error(t, err, "%d of %d bytes", n, len(c.body))
				require.ErrorContains(t, err, "test:1")
				require.True(t, conn.Broken())
			}
		})
	}
}

func TestAnswerTooLarge(t *testing.T) {
	_, _, _, fetch := answers()
	_, err := speaking(t, 5, fetch).Fetch(t.Context(), FetchRequest{MaxAnswer: 20})
	var size *SizeError
	require.ErrorAs(t, err, &size)
	require.Equal(t, SizeError{"test:1", len(fetch), 20}, *size)
	require.ErrorContains(t, err, "the limit is 20")
}

// TestNegativeLength: it is no record that is too large.
func TestNegativeLength(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	c := &Conn{addr: "test:1", timeout: time.Second, net: here, owner: here, versions: map[int16][2]int16{1: {4, 11}}}
	go func() {
		there.Read(make([]byte, 1000))
		there.Write([]byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 1})
	}()
	_, err := c.Fetch(t.Context(), FetchRequest{MaxAnswer: 20})
	require.ErrorAs(t, err, new(*AlienError))
	require.ErrorContains(t, err, "the impossible length -256")
	require.True(t, c.Broken())
}

func TestCancelledBeforeTheRequest(t *testing.T) {
	c := speaking(t, 5)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Metadata(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, c.Broken(), "nothing was sent")
}

func TestSilence(t *testing.T) {
	c := speaking(t, 5)
	c.timeout = 10 * time.Millisecond
	_, err := c.Metadata(t.Context(), nil)
	require.ErrorContains(t, err, "broker test:1: Metadata: no answer within 10ms")
	var silent interface{ Timeout() bool }
	require.True(t, errors.As(err, &silent) && silent.Timeout())
	require.True(t, c.Broken())
}

func TestCodes(t *testing.T) {
	require.ErrorIs(t, Error(6), kafkago.NotLeaderForPartition)
	require.True(t, Error(6).Retriable())
	require.False(t, Error(29).Retriable())
	require.ErrorContains(t, Error(-1), "unknown server error")
	require.NoError(t, code(0))
	require.True(t, Error(78).Retriable())
	require.ErrorContains(t, Error(78), "[78] Offset Not Available: the leader") // after an election
	require.EqualError(t, Error(77), "[77] see this number in Kafka's list of error codes")
}
