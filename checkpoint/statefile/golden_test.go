package statefile

import (
	"bytes"
	"flag"
	"math"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/vfs"
)

// update writes the files of the newest format that are missing; it never replaces one, as files that exist are to be
// read for ever.
var update = flag.Bool("update", false, "write missing golden files")

// goldenMap is what the golden files hold. It never changes: another content is another file.
func goldenMap(t *testing.T, i Info) (one, two *statemap.Map[string, int64]) {
	at := func(batches, n int64) int64 {
		if !i.Deadlines {
			return i.BatchTime - batches*second
		}
		return [...]int64{math.MaxInt64, i.BatchTime + batches*second, ^(i.BatchTime + batches*second)}[n%3]
	}
	put := func(m *statemap.Map[string, int64], n int, s int64) {
		tm := at(int64(n%9), int64(n))
		if i.Deadlines && tm < 0 {
			s = 0
		}
		require.NoError(t, m.Put(word(n), s, tm))
	}
	one = newMap[string, int64](t)
	for n := range 60 {
		put(one, n, int64(n)*1000-7)
	}
	require.NoError(t, one.Put("", math.MinInt64, at(0, 0)))
	two, err := one.Copy()
	require.NoError(t, err)
	for n := range 20 {
		require.NoError(t, two.Remove(word(n)))
		put(two, n+50, 42)
	}
	return one, two
}

// TestGolden: every file that a release has written is read for ever (format × kind × form of times × compression), and
// the writer still makes the same bytes, where the compressor is deterministic.
func TestGolden(t *testing.T) {
	for _, deadlines := range []bool{false, true} {
		for _, c := range []Compression{None, S2, Zstd} {
			times := map[bool]string{false: "times", true: "deadlines"}[deadlines]
			t.Run(times+"/"+c.String(), func(t *testing.T) {
				i := info(1, c)
				i.Deadlines, i.Chain = deadlines, Sum{1, 2, 3}
				one, two := goldenMap(t, i)
				k := newKit[string, int64](t)
				snapshot, sum := k.snapshot(i, one)
				i2 := info(2, c)
				i2.Deadlines, i2.Chain = deadlines, sum.Chain
				delta, sum2 := k.delta(i2, two)

				base := filepath.Join("testdata", "format1."+times+"."+c.String())
				snapshot = golden(t, base+".snapshot", snapshot, c)
				delta = golden(t, base+".delta", delta, c)

				loaded := newMap[string, int64](t)
				w := want(Snapshot, 1)
				w.Deadlines, w.Chain = deadlines, sum.Chain
				k.load(snapshot, w, loaded)
				require.Equal(t, entries(one), entries(loaded))
				w = want(Delta, 2)
				w.Deadlines, w.Chain = deadlines, sum2.Chain
				k.load(delta, w, loaded)
				require.Equal(t, entries(two), entries(loaded))
			})
		}
	}
}

// golden reads a file, and compares made with it. S2's assembly and its Go form make different bytes, both right; zstd's
// change with its releases.
func golden(t *testing.T, name string, made []byte, c Compression) []byte {
	file, err := vfs.ReadFile(vfs.Disk(), name)
	if err != nil && *update {
		require.NoError(t, vfs.WriteFile(vfs.Disk(), name, made))
		file = made
	} else {
		require.NoError(t, err)
	}
	if c == None || c == S2 && runtime.GOARCH == "amd64" {
		assert.True(t, bytes.Equal(file, made), "%s: the writer makes other bytes: that is a new format", name)
	}
	return file
}
