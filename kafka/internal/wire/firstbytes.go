package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/statemill/statemill/internal/sabotage"
)

// mostVersions bounds the first answer, leastVersions is the shortest: an id, a code and
// how many versions follow.
const (
	mostVersions  = 1 << 20
	leastVersions = 4 + 2 + 4
)

// beginsAnswer says that less than the head of the first answer, which has this
// correlation id, can be the beginning of one.
func beginsAnswer(b []byte, id int32) bool {
	if sabotage.On("kafka-cut-head-is-alien") {
		return false
	}
	var least, most [8]byte
	copy(least[:], b)
	for i := copy(most[:], b); i < len(most); i++ {
		most[i] = 0xff
	}
	be := binary.BigEndian
	return be.Uint32(least[:]) <= mostVersions && be.Uint32(most[:]) >= leastVersions &&
		be.Uint32(least[4:]) <= uint32(id) && be.Uint32(most[4:]) >= uint32(id)
}

// toldApart is a connection whose end is no io.EOF. kafka-go takes an end in the middle
// of the authentication for a refusal; but a broker that refuses somebody says so by a
// code, and one that goes down hangs up wherever it is.
type toldApart struct{ net.Conn }

func (c toldApart) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.EOF) && !sabotage.On("kafka-hang-up-is-a-refusal") {
		err = eof{}
	}
	return n, err
}

// eof is io.EOF where nobody must know it.
type eof struct{}

func (eof) Error() string { return io.EOF.Error() }

// cause gives io.EOF back.
func cause(err error) error {
	if errors.As(err, new(eof)) {
		return io.EOF
	}
	return err
}
