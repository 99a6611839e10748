package receiver

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzBlocks reads any bytes as blocks: no panic, no endless loop, no record that
// is not within its block.
func FuzzBlocks(f *testing.F) {
	b := beginBlock(nil)
	b = appendRecord(appendRecord(b, []byte("one")), nil)
	endBlock(b, 7, 2)
	f.Add(b)
	f.Add(append(bytes.Clone(b), b[:10]...))
	f.Add(appendHead(nil, 3))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = readHead(data)
		var buf []byte
		for at := int64(0); ; {
			b, grown, ok, err := readBlock(bytes.NewReader(data), at, int64(len(data)), buf)
			require.NoError(t, err)
			if !ok {
				return
			}
			buf = grown
			n := 0
			if err := b.records(func(offset int64, r []byte) error {
				require.Equal(t, b.first+int64(n), offset)
				n++
				return nil
			}); err == nil {
				require.Equal(t, b.count, n)
			}
			at += b.size
		}
	})
}
