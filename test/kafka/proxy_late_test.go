package kafkatest

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
)

// lateRequest is a request that a proxy holds back, as a broker or a line does that stands
// still: its client hears nothing, gives up and asks again on another connection; later it
// arrives.
type lateRequest struct {
	number uint16 // which kind of request
	nth    int    // and which of them, from 1 on
	behind int    // it is delivered, and answered, before the next one behind so many others

	frame  []byte   // nil: it has not come yet
	broker net.Conn // where it goes
	done   chan struct{}
}

// transactional are the requests that overtake a late one.
var transactional = []uint16{produceRequest, 9, 22, 24, 25, endTxnRequest, 28}

// holdBack lets one request be late; the result says whether it has arrived.
func (p *proxy) holdBack(l lateRequest) (arrived func() bool) {
	l.done = make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = &l
	return func() bool {
		select {
		case <-l.done:
			return true
		default:
			return false
		}
	}
}

// take says whether a request is to be held back, or else what is to be delivered before
// it. The proxy's lock is held.
func (l *lateRequest) take(frame []byte, broker net.Conn) (hold bool, first *lateRequest) {
	number := binary.BigEndian.Uint16(frame[4:])
	if l == nil || !slices.Contains(transactional, number) {
		return false, nil
	}
	if l.frame == nil {
		if number == l.number {
			l.nth--
		}
		if l.nth == 0 {
			l.frame, l.broker = frame, broker
			return true, nil
		}
		return false, nil
	}
	l.behind--
	if l.behind == -1 {
		return false, l
	}
	return false, nil
}

// answered takes note of an answer. The proxy's lock is held.
func (l *lateRequest) answered(broker net.Conn) {
	if l != nil && l.broker == broker && l.behind < 0 {
		close(l.done)
		l.broker = nil
	}
}

// requests passes requests on.
func (p *proxy) requests(client, broker net.Conn) {
	for {
		frame := make([]byte, 4)
		if _, err := io.ReadFull(client, frame); err != nil {
			break
		}
		frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
		if _, err := io.ReadFull(client, frame[4:]); err != nil {
			break
		}
		p.mu.Lock()
		hold, first := p.late.take(frame, broker)
		p.mu.Unlock()
		if hold {
			return // the connection to the broker stays
		}
		if first != nil {
			if _, err := first.broker.Write(first.frame); err == nil {
				<-first.done
			}
		}
		if _, err := broker.Write(frame); err != nil {
			break
		}
	}
	broker.Close()
}
