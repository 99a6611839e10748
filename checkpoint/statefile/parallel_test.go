package statefile

import (
	"bytes"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFramesDecodeSideBySide: frames are independent of one another and of the reader, so goroutines may decode them.
func TestFramesDecodeSideBySide(t *testing.T) {
	compressions(t, func(t *testing.T, c Compression) {
		k := newKit[string, int64](t)
		m := newMap[string, int64](t)
		for i := range 5 * blockRecords {
			require.NoError(t, m.Put(word(i), int64(i), 1))
		}
		file, _ := k.snapshot(info(1, c), m)
		rd, err := NewReader(bytes.NewReader(file), "f", nil)
		require.NoError(t, err)
		var wg sync.WaitGroup
		faults := make(chan error, 6)
		rows := make(chan map[string]int64, 6)
		for {
			f := new(Frame)
			if err := rd.Next(f); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				var b Block
				if err := b.Decode(f); err != nil {
					faults <- err
					return
				}
				got := map[string]int64{}
				for i := range b.Len() {
					s, _ := b.State(i)
					v, err := k.dec.state.Decode(s)
					if err != nil {
						faults <- err
						return
					}
					got[string(b.Key(i))] = v
				}
				rows <- got
			})
		}
		wg.Wait()
		close(faults)
		close(rows)
		for err := range faults {
			t.Error(err)
		}
		n := 0
		for got := range rows {
			for key, s := range got {
				state, _, err := m.Get(key)
				require.NoError(t, err)
				require.Equal(t, state, s)
				n++
			}
		}
		require.Equal(t, m.Len(), n)
	})
}
