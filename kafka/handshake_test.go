package kafka

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// reconnects lets a source that has read from the broker connect anew, while the first
// answer to a request of a key has this fault, and says what its next plan says.
func reconnects(t *testing.T, b *fakeBroker, s *kafkaSource, key int16, act string) error {
	t.Helper()
	b.faults(key, 0, act, 1)
	b.mu.Lock()
	for c := range b.conns {
		c.Close()
	}
	b.mu.Unlock()
	_, err := s.Plan(t.Context(), source.Limits{})
	b.mu.Lock()
	defer b.mu.Unlock()
	_, left := b.fault(key, 0)
	require.Empty(t, left, "the fault was met")
	return err
}

// TestHandshakesThatAreCut: a broker that goes down hangs up at any byte of the first
// answers. It has refused nobody, and is asked again. // report 28
func TestHandshakesThatAreCut(t *testing.T) {
	b := newFake(t)
	b.users = true
	b.log("t", 0, batchtest.Values(0, "a"))
	s := open(t, b, nil, SASLPlain("u", password), RetryFor(3*time.Second))
	_, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	for key, size := range map[int16]int{18: 40, 17: 4 + 4 + 2 + 11, 36: 4 + 4 + 8} {
		for n := range size {
			require.NoError(t, reconnects(t, b, s, key, fmt.Sprintf("cut %d", n)), "request %d, %d bytes", key, n)
		}
	}
}

// TestVersionsThatAreCut: the same without users, where the first bytes are not taken for
// another protocol. // report 28
func TestVersionsThatAreCut(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	s := open(t, b, nil, RetryFor(3*time.Second))
	_, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	for n := range 40 {
		require.NoError(t, reconnects(t, b, s, 18, fmt.Sprintf("cut %d", n)), "%d bytes", n)
	}
}

// TestRefusedByACode: the broker has said no, which does not pass. // report 28
func TestRefusedByACode(t *testing.T) {
	for key, code := range map[int16]int16{17: 33, 36: 58} {
		b := newFake(t)
		b.users = true
		b.log("t", 0, batchtest.Values(0, "a"))
		s := open(t, b, nil, SASLPlain("u", password), RetryFor(time.Hour))
		b.faults(key, code, "", 1000)
		b.mu.Lock()
		for c := range b.conns {
			c.Close()
		}
		b.mu.Unlock()
		_, err := s.Plan(t.Context(), source.Limits{})
		require.ErrorIs(t, err, kafkago.Error(code))
		var e *Error
		require.ErrorAs(t, err, &e)
		require.True(t, e.Permanent())
	}
}

// TestRefusedByHangingUp: brokers before Kafka 1.0 say in no other way that they do not
// know the user. That ends with the retries, and names the credentials. // report 28
func TestRefusedByHangingUp(t *testing.T) {
	b := newFake(t)
	b.users, b.old = true, true
	b.log("t", 0, batchtest.Values(0, "a"))
	err := made(b, SASLPlain("u", password), RetryFor(50*time.Millisecond)).Open(t.Context(), nil)
	require.ErrorIs(t, err, io.EOF)
	for _, says := range []string{b.addr(), "SASL", "closed the connection", "are user and password right?"} {
		require.ErrorContains(t, err, says)
	}
	require.NotContains(t, err.Error(), password)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Greater(t, e.Tries, 1)
	require.True(t, e.Permanent(), "a start is not tried for ever")
}

// TestOtherProtocolsAtOnce: what can be no beginning of Kafka's answer is told without
// another try, however short it is.
func TestOtherProtocolsAtOnce(t *testing.T) {
	for _, says := range []string{"H", "HTTP", "220\r\n", "\x15\x03\x01\x00\x02\x02\x28", "\xff\xfe", "\x00\x00\x00\x00", "\x00\x00\x00\x20\x00\x00\x01", "\x00\x00\x00\x20\x00\x00\x00\x02"} {
		addr := server(t, func(c net.Conn) {
			c.Read(make([]byte, 100))
			io.WriteString(c, says)
		})
		s := NewSource(Brokers(addr), Topics("t"), RetryFor(time.Hour), RequestTimeout(time.Minute))
		err := s.Open(t.Context(), nil)
		var alien *wire.AlienError
		require.ErrorAs(t, err, &alien, "%q", says)
		require.True(t, alien.Permanent(), "%q", says)
		require.ErrorContains(t, err, fmt.Sprintf("it answered %q", says))
	}
}
