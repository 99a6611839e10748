package receiver

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// Report 13: callers that come while a sync takes its time share the next block, but none that is too long to be read
// back; those that do not fit share the one after it.
func TestGroupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		faults := new(vfs.Faults)
		j, err := openJournal(vfs.WithFaults(mem, faults), "in", 1<<20, 1<<30, 0)
		require.NoError(t, err)
		j.maxBlock = 1000
		slow := faults.Freeze(vfs.Rule{Kinds: vfs.KindSync, Path: "*.segment"})
		want := map[string]bool{}
		var all sync.WaitGroup
		for i := range 12 {
			r := fmt.Sprintf("%0*d", 100+20*i, i)
			want[r] = true
			all.Go(func() {
				if err := j.append(t.Context(), [][]byte{[]byte(r)}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		slow.Thaw()
		all.Wait()
		require.NoError(t, j.close())

		b, err := vfs.ReadFile(mem, j.segments[0].path)
		require.NoError(t, err)
		bounds := Bounds(b)
		require.Less(t, len(bounds), 2+12, "they share blocks")
		for i, s := range bounds[1:] {
			x, _, ok, err := j.segments[0].layout.readBlock(bytes.NewReader(b), bounds[i], s, nil)
			require.True(t, ok && err == nil)
			require.LessOrEqual(t, len(x.payload), 1000)
			require.NoError(t, x.records(func(_ int64, r []byte) error {
				require.True(t, want[string(r)], "once")
				delete(want, string(r))
				return nil
			}))
		}
		require.Empty(t, want)
	})
}

// The lengths before the records count too: many short records are as long as a few long ones.
func TestSizeOfPayload(t *testing.T) {
	for _, records := range [][][]byte{nil, {nil}, make([][]byte, 200), {make([]byte, 127), make([]byte, 128)}, {make([]byte, 1<<20)}} {
		var b []byte
		for _, r := range records {
			b = appendRecord(b, r)
		}
		require.EqualValues(t, len(b), sizeOfPayload(records))
	}
}
