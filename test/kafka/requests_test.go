package kafkatest

import (
	"context"
	"encoding/binary"
	"net"

	kafkago "github.com/segmentio/kafka-go"
)

// Requests by their numbers in the protocol.
const (
	produceRequest = 0
	fetchRequest   = 1
	endTxnRequest  = 26
)

// onRequests makes connections that tell of each request before it is sent, by its
// number and bytes. Whoever asks waits until that returns; several may at once.
func onRequests(told func(number uint16, bytes []byte)) *kafkago.Dialer {
	return &kafkago.Dialer{DialFunc: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &toldConn{c, told}, nil
	}}
}

// toldConn is a connection whose requests are known. Each is written at once.
type toldConn struct {
	net.Conn
	told func(number uint16, bytes []byte)
}

func (c *toldConn) Write(p []byte) (int, error) {
	if len(p) >= 8 { // length, number, version
		c.told(binary.BigEndian.Uint16(p[4:]), p)
	}
	return c.Conn.Write(p)
}
