package batch

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
	bt "github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/stretchr/testify/require"
)

const wide = 128 << 20 // as zstd -22

// wideFrame is content in a frame with the window of zstd's highest level.
func wideFrame(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	require.NoError(t, err)
	for len(content) > 0 { // in parts, so that the frame does not know its size
		n := min(len(content), 100<<10)
		_, err = w.Write(content[:n])
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		content = content[n:]
	}
	require.NoError(t, w.Close())
	b := out.Bytes()
	b[5] = byte(windowFor(wide)) // an encoder that has it would allocate it
	var h zstd.Header
	require.NoError(t, h.Decode(b))
	require.Equal(t, uint64(wide), h.WindowSize)
	require.False(t, h.HasFCS)
	return b
}

// allocated is what f takes from the heap.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestWideWindows: zstd's levels 20 to 22 name windows that are larger than what a batch
// may be. What counts is what is in them. // report 29
func TestWideWindows(t *testing.T) {
	content := bytes.Repeat([]byte("over and over again "), 3<<20/20)
	rand.NewChaCha8([32]byte{}).Read(content[:1<<20])
	copy(content[len(content)-1000:], content[:1000]) // a match that reaches back far
	frame := wideFrame(t, content)
	var z inflater
	z.reset(len(content))
	used := allocated(func() {
		got, err := z.inflate(codecZstd, frame)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got))
	})
	require.Less(t, used, uint64(32<<20), "no window is allocated")

	small := wideFrame(t, content[:1000])
	skip := binary.LittleEndian.AppendUint32([]byte{0x50, 0x2a, 0x4d, 0x18}, 3)
	several := bytes.Join([][]byte{small, skip, []byte("abc"), wideFrame(t, bytes.Repeat([]byte{7}, 300<<10)), small}, nil)
	z.reset(1 << 20)
	got, err := z.inflate(codecZstd, several)
	require.NoError(t, err)
	require.Equal(t, bytes.Join([][]byte{content[:1000], bytes.Repeat([]byte{7}, 300<<10), content[:1000]}, nil), got)

	for n := range several { // cut at each byte
		_, _ = z.inflate(codecZstd, several[:n])
	}

	batch := bt.Values(5, "a", "b").Append(nil)
	var d Decoder
	d.Reset(bt.Batch{Base: 5, Codec: bt.Zstd}.AppendBody(nil, wideFrame(t, batch[headerSize:]), 2), 5, true, nil, limit)
	var r Record
	for _, want := range []string{"a", "b"} {
		more, err := d.Next(&r)
		require.NoError(t, err)
		require.True(t, more)
		require.Equal(t, want, string(r.Value))
	}
}

// TestWideBombs: the limit holds for what comes out, in memory too. // report 29
func TestWideBombs(t *testing.T) {
	bomb := wideFrame(t, make([]byte, 40<<20))
	for _, most := range []int{1 << 20, 12 << 20} {
		var z inflater
		z.reset(most)
		used := allocated(func() {
			_, err := z.inflate(codecZstd, bomb)
			require.ErrorIs(t, err, ErrTooLarge)
		})
		require.Less(t, used, uint64(8*max(most, zstdWindow)), "buffers that grow to the limit, in all")
	}
}

// TestWindows: RFC 8878's own numbers.
func TestWindows(t *testing.T) {
	require.Equal(t, uint64(1<<10), window(0).size())
	require.Equal(t, uint64(1<<41+7*1<<38), window(255).size())
	for w := range 255 {
		n := window(w).size()
		require.Equal(t, window(w), windowFor(n))
		require.Equal(t, window(w+1), windowFor(n+1))
	}
	require.Equal(t, window(255), windowFor(1<<62))
}
