package kafka

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"strings"
)

// appendSASL is the rest of an answer to SaslHandshake or SaslAuthenticate. Every user is
// known, unless code says otherwise.
func appendSASL(a []byte, key, code int16) []byte {
	be := binary.BigEndian
	a = be.AppendUint16(a, uint16(code))
	if key == 17 {
		a = append(a, 0, 0, 0, 1, 0, 5)
		return append(a, "PLAIN"...)
	}
	return append(a, 0xff, 0xff, 0, 0, 0, 0) // no words, no challenge
}

// refusesToken does as brokers before Kafka 1.0 with a user that they do not know: they
// take the token, which stands behind its length alone, and hang up.
func refusesToken(c net.Conn) bool {
	var n [4]byte
	if _, err := io.ReadFull(c, n[:]); err == nil {
		io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(n[:])))
	}
	return true
}

// cutAt is the act that sends only the first bytes of an answer, and hangs up.
func cutAt(act string) (int, bool) {
	after, ok := strings.CutPrefix(act, "cut ")
	n, err := strconv.Atoi(after)
	return n, ok && err == nil
}
