package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/sabotage"
)

// The request kinds.
const (
	keyFetch       = 1
	keyListOffsets = 2
	keyMetadata    = 3
	keyAPIVersions = 18
)

const (
	// smallAnswer bounds the answers that hold no records.
	smallAnswer = 64 << 20
	// atOnce is what is allocated for an answer before its bytes come: its length is
	// the server's word. A fetch expects what it asks for, up to mostAtOnce.
	atOnce     = 64 << 10
	mostAtOnce = 16 << 20
	// stride is how many bytes must come within the timeout.
	stride = 256 << 10
)

// Conn is a connection to one broker.
type Conn struct {
	addr     string
	clientID string
	timeout  time.Duration
	net      net.Conn
	owner    io.Closer // kafka-go's connection around net
	versions map[int16][2]int16
	request  []byte
	last     int32  // correlation id of the last request
	doing    string // the name of the request that is under way
	expect   int    // bytes that were asked for, and are allocated at once
	broken   bool
	muted    time.Duration // for how long from the last answer on the broker reads nothing
}

// Dial connects, through d, and learns what the broker speaks. timeout is how long
// the broker may be silent, in this call and later ones.
func Dial(ctx context.Context, d *kafkago.Dialer, addr, clientID string, timeout time.Duration) (*Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, &silence{addr, timeout})
	defer cancel()
	c := &Conn{addr: addr, clientID: clientID, timeout: timeout}
	outer, release := ctx, func() bool { return true }
	defer func() { release() }()
	inner := *d
	inner.ClientID, inner.TLS = clientID, nil
	inner.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialNet(ctx, d, network, address, &c.doing)
		if err != nil {
			return nil, err
		}
		// kafka-go sets no deadline while it authenticates.
		if err := conn.SetDeadline(clock.System().Now().Add(timeout)); err != nil {
			conn.Close()
			return nil, err
		}
		// Nor does it look at the context then.
		release = context.AfterFunc(outer, func() { conn.Close() })
		c.net = conn
		if d.SASLMechanism != nil {
			c.doing = authentication
		}
		return toldApart{conn}, nil
	}
	owner, err := inner.DialContext(ctx, "tcp", addr)
	if err != nil {
		if c.net != nil {
			c.net.Close() // kafka-go leaves it open in one case
		}
		return nil, c.ended(ctx, err)
	}
	c.owner, c.doing = owner, ""
	if err := c.learn(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// dialNet opens the connection with the user's dialer, and does the TLS handshake
// here, so that the bytes that kafka-go would send can be sent by us.
func dialNet(ctx context.Context, d *kafkago.Dialer, network, address string, doing *string) (net.Conn, error) {
	dial := d.DialFunc
	if dial == nil {
		dial = (&net.Dialer{LocalAddr: d.LocalAddr, FallbackDelay: d.FallbackDelay, KeepAlive: d.KeepAlive}).DialContext
	}
	conn, err := dial(ctx, network, address)
	if err != nil || d.TLS == nil {
		return conn, err
	}
	config := d.TLS
	if config.ServerName == "" {
		config = config.Clone()
		if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
			config.ServerName = address
		}
	}
	secure := tls.Client(conn, config)
	*doing = handshake
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	*doing = ""
	return secure, nil
}

// What is done before the first request of ours, where that is wanted.
const (
	handshake      = "TLS handshake"
	authentication = "SASL authentication"
)

// silence is a broker that says nothing.
type silence struct {
	addr string
	d    time.Duration
}

func (e *silence) Error() string { return fmt.Sprintf("no answer within %v", e.d) }

// Timeout tells it apart from other failures, as in net.Error.
func (e *silence) Timeout() bool { return true }

// ended names the broker, and says why when it was the context or the deadline.
func (c *Conn) ended(ctx context.Context, err error) error {
	var alien *AlienError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &alien):
		return err
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.As(err, &timeout) && timeout.Timeout():
		err = &silence{c.addr, c.timeout}
	}
	// A listener that expects something else answers nothing, or hangs up.
	switch {
	case c.doing == handshake && (errors.As(err, &timeout) && timeout.Timeout() || hungUp(err)):
		return fmt.Errorf("broker %s: %s: %w: does this listener speak TLS?", c.addr, c.doing, err)
	case c.doing == authentication && hungUp(err):
		return fmt.Errorf("broker %s: %s: %w: the broker closed the connection: is its listener for SASL, are user and password right? (before Kafka 1.0 it says no in no other way)", c.addr, c.doing, cause(err))
	case c.doing != "" && c.last == firstAsked && hungUp(err):
		return fmt.Errorf("broker %s: %s: %w: the broker closed the connection: does its listener want TLS or SASL?", c.addr, c.doing, err)
	case c.doing != "":
		return fmt.Errorf("broker %s: %s: %w", c.addr, c.doing, err)
	}
	return fmt.Errorf("broker %s: %w", c.addr, err)
}

// firstAsked is the correlation id of the first request after that for the versions, at
// which a broker that wants SASL hangs up.
const firstAsked = 2

// hungUp says that the other side ended the connection.
func hungUp(err error) bool {
	var op *net.OpError // a reset
	return errors.As(err, new(eof)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op) && op.Op == "read" && !op.Timeout()
}

// Addr is the broker's address.
func (c *Conn) Addr() string { return c.addr }

// Broken says that the connection cannot be used again.
func (c *Conn) Broken() bool { return c.broken }

// Close closes the connection.
func (c *Conn) Close() error { return c.owner.Close() }

// VersionError is a broker that speaks no version of a request that is spoken here.
type VersionError struct {
	Addr, Request string
	Broker, Own   [2]int16
	Since         string // the first Kafka that does
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("broker %s speaks versions %d to %d of %s, Statemill %d to %d: a broker of Kafka %s or later is needed",
		e.Addr, e.Broker[0], e.Broker[1], e.Request, e.Own[0], e.Own[1], e.Since)
}

// Permanent says that trying again does not help.
func (e *VersionError) Permanent() bool { return true }

// since is the first Kafka that speaks a version of a request.
func since(key, version int16) string {
	if key == keyOffsetFetch || key == keyInitProducerID && version >= nextEpoch {
		return "2.5"
	}
	return "1.0"
}

// version picks the greatest version that both sides speak.
func (c *Conn) version(key, least, most int16, name string) (int16, error) {
	v, ok := c.versions[key]
	if !ok || v[0] > most || v[1] < least {
		return 0, &VersionError{c.addr, name, v, [2]int16{least, most}, since(key, least)}
	}
	return min(v[1], most), nil
}

// begin starts a request; the caller appends its body to the result.
func (c *Conn) begin(key, version int16, flexible bool) []byte {
	c.last++
	b := append(c.request[:0], 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(c.last))
	b = appendText(b, c.clientID)
	if flexible {
		b = append(b, 0)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

// call sends a request that begin started and returns the answer behind the
// correlation id, in a buffer of its own.
func (c *Conn) call(ctx context.Context, request []byte, most int) ([]byte, error) {
	expect := max(c.expect, atOnce)
	c.request, c.expect = request, 0
	c.doing = requestName(int16(binary.BigEndian.Uint16(request[4:])))
	defer func() { c.doing = "" }()
	binary.BigEndian.PutUint32(request, uint32(len(request)-4))
	if err := ctx.Err(); err != nil {
		return nil, c.ended(ctx, err) // nothing was sent: the connection is good
	}
	stop := context.AfterFunc(ctx, func() { c.net.SetDeadline(time.Unix(1, 0)) })
	answer, err := c.exchange(ctx, request, most, expect)
	if !stop() {
		c.broken = true // its deadline is past
	}
	if err != nil {
		c.broken = true
		return nil, c.ended(ctx, err)
	}
	return answer, nil
}

func (c *Conn) exchange(ctx context.Context, request []byte, most, expect int) ([]byte, error) {
	if err := c.more(ctx); err != nil {
		return nil, err
	}
	if _, err := c.net.Write(request); err != nil {
		return nil, err
	}
	var head [8]byte
	if n, err := io.ReadFull(c.net, head[:]); err != nil {
		if n > 0 && errors.Is(err, io.ErrUnexpectedEOF) && c.versions == nil {
			return nil, &AlienError{Addr: c.addr, Got: fmt.Sprintf("it answered %q and closed the connection", head[:n]), Closed: beginsAnswer(head[:n], c.last)}
		}
		if n == 0 && errors.Is(err, io.EOF) && c.versions == nil {
			return nil, &AlienError{Addr: c.addr, Got: "it closed the connection at the first request", Closed: true}
		}
		return nil, err
	}
	size := int(int32(binary.BigEndian.Uint32(head[:]))) - 4
	if id := int32(binary.BigEndian.Uint32(head[4:])); id != c.last {
		return nil, &AlienError{Addr: c.addr, Got: fmt.Sprintf("it answered %q", head[:])}
	}
	if size < 0 {
		return nil, &AlienError{Addr: c.addr, Got: fmt.Sprintf("its answer has the impossible length %d", size+4)}
	}
	if size > most {
		return nil, &SizeError{Addr: c.addr, Size: size, Most: most}
	}
	return c.body(ctx, size, expect)
}

// body reads the rest of an answer. Each stride has its own deadline, so that a
// large answer over a slow line is not mistaken for silence.
func (c *Conn) body(ctx context.Context, size, expect int) ([]byte, error) {
	b := make([]byte, min(size, expect))
	for at := 0; at < size; {
		if at == len(b) { // the server has sent what was made for it
			more := make([]byte, min(size, 2*len(b)))
			copy(more, b)
			b = more
		}
		end := min(at+stride, len(b))
		if err := c.more(ctx); err != nil {
			return nil, err
		}
		n, err := io.ReadFull(c.net, b[at:end])
		if at += n; err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return b, nil
}

// more gives the broker another timeout. The context's end wins: it may have set
// its own deadline just before.
func (c *Conn) more(ctx context.Context) error {
	if sabotage.On("answer-without-deadline") {
		return c.net.SetDeadline(time.Time{})
	}
	if err := c.net.SetDeadline(clock.System().Now().Add(c.timeout)); err != nil {
		return err
	}
	return ctx.Err()
}

// SizeError is an answer that is larger than was allowed.
type SizeError struct {
	Addr       string
	Size, Most int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("broker %s: an answer of %d bytes, the limit is %d", e.Addr, e.Size, e.Most)
}

// learn asks for the versions, in the oldest form, which every broker answers.
func (c *Conn) learn(ctx context.Context) error {
	b, err := c.call(ctx, c.begin(keyAPIVersions, 0, false), mostVersions)
	if size := (*SizeError)(nil); errors.As(err, &size) {
		return &AlienError{Addr: c.addr, Got: "its first answer has an impossible length"}
	}
	if err != nil {
		return err
	}
	r := &reader{b: b}
	if code := r.i16(); code != 0 && kafkago.Error(code).Title() != "" {
		return fmt.Errorf("broker %s: api versions: %w", c.addr, Error(code))
	}
	c.versions = map[int16][2]int16{}
	for n := r.count(6); n > 0; n-- {
		key := r.i16()
		c.versions[key] = [2]int16{r.i16(), r.i16()}
	}
	if r.bad || len(c.versions) == 0 {
		return &AlienError{Addr: c.addr, Got: fmt.Sprintf("it answered %q", bytes.TrimSpace(b[:min(len(b), 32)]))}
	}
	return nil
}

// cut is an answer that ends too soon.
func (c *Conn) cut(what string) error {
	c.broken = true
	return &AlienError{Addr: c.addr, Got: "its answer to " + what + " is cut"}
}
