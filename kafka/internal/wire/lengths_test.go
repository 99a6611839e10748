package wire

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLengthsAreNotBelieved: a length field, the answer's own or any in it, does not
// make room for what does not come.
func TestLengthsAreNotBelieved(t *testing.T) {
	allocated := func(f func()) int {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	all := calls()
	for _, g := range goldens(t, "answer") {
		name, _, _ := strings.Cut(g.name, "/")
		for at := 0; at+4 <= len(g.bytes); at++ {
			b := bytes.Clone(g.bytes)
			binary.BigEndian.PutUint32(b[at:], 0x7fffffff)
			c, _ := talking(all[name].key, g.version, b)
			require.Less(t, allocated(func() { _, _ = all[name].do(t.Context(), c) }), 256<<10, "%s v%d at %d", g.name, g.version, at)
		}
	}
	m := &promising{size: 60 << 20}
	c, _ := talking(keyMetadata, 5, nil)
	c.net = m
	require.Less(t, allocated(func() {
		_, err := c.Metadata(t.Context(), nil)
		require.Error(t, err)
	}), 256<<10)
	c, _ = talking(keyFetch, 11, nil)
	c.net = m
	require.Less(t, allocated(func() {
		_, err := c.Fetch(t.Context(), FetchRequest{MaxBytes: 1 << 20, MaxAnswer: 100 << 20})
		require.Error(t, err)
	}), 2<<20, "what was asked for")
}

// promising tells a length, and sends ten bytes.
type promising struct {
	memConn
	size int
}

func (m *promising) Write(b []byte) (int, error) {
	m.out.Reset()
	m.out.Write(binary.BigEndian.AppendUint32(nil, uint32(m.size)))
	m.out.Write(b[8:12])
	m.out.WriteString("ten bytes.")
	return len(b), nil
}

// TestLargeAnswerComesWhole: one that is larger than what was expected, in a buffer of
// its size.
func TestLargeAnswerComesWhole(t *testing.T) {
	_, _, _, fetch := answers()
	size := 3 << 20
	body := binary.BigEndian.AppendUint32(fetch[:len(fetch)-7:len(fetch)-7], uint32(size))
	body = append(body, bytes.Repeat([]byte("x"), size)...)
	c, _ := talking(keyFetch, 11, body)
	a, err := c.Fetch(t.Context(), FetchRequest{TopicPartition: TopicPartition{"t", 3}, MaxBytes: 1 << 20, MaxAnswer: 10 << 20})
	require.NoError(t, err)
	require.Len(t, a.Batches, size)
	require.Equal(t, strings.Repeat("x", size), string(a.Batches))
}
