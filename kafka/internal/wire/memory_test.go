package wire

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// memConn is a broker in memory: it answers each request with body, under the
// request's correlation id, and keeps the request.
type memConn struct {
	net.Conn
	body []byte
	sent []byte
	out  bytes.Buffer
}

func (m *memConn) Write(b []byte) (int, error) {
	m.sent = bytes.Clone(b)
	m.out.Reset()
	head := binary.BigEndian.AppendUint32(nil, uint32(len(m.body)+4))
	m.out.Write(append(head, b[8:12]...))
	m.out.Write(m.body)
	return len(b), nil
}

func (m *memConn) Read(b []byte) (int, error) {
	if m.out.Len() == 0 {
		return 0, io.EOF
	}
	return m.out.Read(b)
}

func (*memConn) SetDeadline(time.Time) error { return nil }
func (*memConn) Close() error                { return nil }

// talking is a connection to a broker in memory that speaks one version of a request.
func talking(key, version int16, body []byte) (*Conn, *memConn) {
	m := &memConn{body: body}
	return &Conn{addr: "test:1", clientID: "me", timeout: time.Second, net: m, owner: m,
		versions: map[int16][2]int16{key: {version, version}}}, m
}

//go:embed testdata/golden.txt
var goldenText string

// golden is a request or an answer as Kafka's other clients write it.
type golden struct {
	name    string
	version int16
	bytes   []byte
}

// goldens reads testdata/golden.txt, which franz-go's kmsg has made: lines of kind,
// name, version and bytes.
func goldens(t testing.TB, kind string) (out []golden) {
	for line := range strings.Lines(goldenText) {
		f := strings.Fields(line)
		require.Len(t, f, 4)
		if f[0] != kind {
			continue
		}
		b, err := hex.DecodeString(f[3])
		require.NoError(t, err)
		var version int16
		for _, c := range f[2] {
			version = version*10 + int16(c-'0')
		}
		out = append(out, golden{f[1], version, b})
	}
	require.NotEmpty(t, out)
	return out
}
