package receiver

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzBlocks reads any bytes as blocks of both formats: no panic, no endless loop, no
// record that is not within its block.
func FuzzBlocks(f *testing.F) {
	b := beginBlock(nil)
	b = appendRecord(appendRecord(b, []byte("one")), nil)
	endBlock(b, 5, 0, 7, 2)
	f.Add(b, uint64(5))
	f.Add(append(bytes.Clone(b), b[:10]...), uint64(5))
	f.Add(appendHead(nil, 3, 5), uint64(5))
	f.Add(unhex(segment1)[headSize1:], uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, salt uint64) {
		_, _, _, _ = readHead(data)
		r, size := bytes.NewReader(data), int64(len(data))
		for _, l := range []layout{{version: 1}, {version: 2, salt: salt}} {
			var buf []byte
			for at := int64(0); ; {
				b, grown, ok, err := l.readBlock(r, at, size, buf)
				require.NoError(t, err)
				if !ok {
					_, err := l.follows(r, at, b.end, 1, size)
					require.NoError(t, err)
					break
				}
				require.Greater(t, b.end, at)
				require.LessOrEqual(t, b.end, size)
				buf = grown
				n := 0
				if err := b.records(func(offset int64, r []byte) error {
					require.Equal(t, b.first+int64(n), offset)
					n++
					return nil
				}); err == nil {
					require.Equal(t, b.count, n)
				}
				at = b.end
			}
		}
	})
}
