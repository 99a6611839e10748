package kafkatest

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy stands between a client and one broker, and treats each answer as it is told:
// the client dials whatever address and gets the proxy.
type proxy struct {
	broker string
	listen net.Listener
	wait   sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
	down   bool // connections are refused: they are closed at once
	number int  // of answers so far
	fault  func(n int) fault
	struck map[fault]int // how often each fault has happened
	late   *lateRequest  // nil: none
}

// fault is what becomes of one answer.
type fault int

const (
	pass    fault = iota
	cut           // the connection ends before it
	half          // half of it, then the connection ends
	delay         // it comes late
	silence       // it never comes, and the connection stays half-open: nobody is behind it any more
	garbage       // its bytes are others
)

// late is how long a delayed answer takes.
const late = 30 * time.Millisecond

func newProxy(t *testing.T, broker string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{broker: broker, listen: l, conns: map[net.Conn]bool{}, struck: map[fault]int{}}
	p.wait.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// at is the address.
func (p *proxy) at() string { return p.listen.Addr().String() }

// set says what becomes of the answers from now on; their numbers begin at 1.
func (p *proxy) set(f func(n int) fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number, p.fault = 0, f
}

// hits is how often a fault has happened.
func (p *proxy) hits(what fault) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck[what]
}

// drop ends all connections; while down, new ones end too.
func (p *proxy) drop(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listen.Close()
	p.drop(true)
	p.wait.Wait()
}

// keep registers a connection, so that drop ends it.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.down {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) accept() {
	for {
		c, err := p.listen.Accept()
		if err != nil {
			return
		}
		if p.keep(c) {
			p.wait.Go(func() { p.serve(c) })
		}
	}
}

func (p *proxy) serve(client net.Conn) {
	broker, err := net.Dial("tcp", p.broker)
	if err != nil || !p.keep(broker) {
		client.Close()
		return
	}
	p.wait.Go(func() { p.requests(client, broker) })
	p.answers(client, broker)
	client.Close()
	broker.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
	delete(p.conns, broker)
}

// answers passes answers on until one ends the connection.
func (p *proxy) answers(client, broker net.Conn) {
	for {
		var head [4]byte
		if _, err := io.ReadFull(broker, head[:]); err != nil {
			return
		}
		frame := make([]byte, 4+int(binary.BigEndian.Uint32(head[:])))
		copy(frame, head[:])
		if _, err := io.ReadFull(broker, frame[4:]); err != nil {
			return
		}
		p.mu.Lock()
		p.number++
		what := pass
		if p.fault != nil {
			what = p.fault(p.number)
		}
		p.struck[what]++
		p.late.answered(broker)
		p.mu.Unlock()
		switch what {
		case cut:
			return
		case half:
			client.Write(frame[:len(frame)/2])
			return
		case silence:
			io.Copy(io.Discard, client) // until the client gives up; what it sends goes nowhere
			return
		case delay:
			timer := time.NewTimer(late)
			<-timer.C
		case garbage:
			for i := 8; i < len(frame); i++ { // behind length and number
				frame[i] ^= byte(i*7 + 1)
			}
		}
		if _, err := client.Write(frame); err != nil {
			return
		}
	}
}
