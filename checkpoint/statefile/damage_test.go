package statefile

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// samples gives a small file of every kind, with all that a file can hold.
func samples(t require.TestingT, c Compression) map[Kind][]byte {
	k := newKit[string, string](t)
	m := newMap[string, string](t)
	i := info(1, c)
	for n := range 40 {
		require.NoError(t, m.Put(word(n), "state state state"[:n%17], i.BatchTime-int64(n%5)*second))
	}
	snapshot, sum := k.snapshot(i, m)
	two, err := m.Copy()
	require.NoError(t, err)
	for n := range 20 {
		require.NoError(t, two.Remove(word(n)))
		require.NoError(t, two.Put(word(n+30), "changed", i.BatchTime+second))
	}
	i = info(2, c)
	i.Chain = sum.Chain
	delta, _ := k.delta(i, two)
	return map[Kind][]byte{Snapshot: snapshot, Delta: delta}
}

// named reports whether err is one of the errors that this package promises for files that are not what they should be.
func named(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrFormat) || errors.Is(err, ErrMismatch)
}

// refused demands that the bytes are refused by loading and by verifying.
func refused(t *testing.T, k *kit[string, string], kind Kind, file []byte, what string, at int) {
	version := int64(1)
	if kind == Delta {
		version = 2
	}
	_, err := k.dec.Load(bytes.NewReader(file), "f", want(kind, version), newMap[string, string](t))
	if err == nil || !named(err) {
		t.Fatalf("%v, %s at %d: loaded with error %v", kind, what, at, err)
	}
	_, _, err = Verify(bytes.NewReader(file), "f", nil)
	if err == nil || !named(err) {
		t.Fatalf("%v, %s at %d: verified with error %v", kind, what, at, err)
	}
}

// TestEveryByteFlipped: each bit of a file counts (design 11: any damaged byte is found).
func TestEveryByteFlipped(t *testing.T) {
	compressions(t, func(t *testing.T, c Compression) {
		k := newKit[string, string](t)
		for kind, file := range samples(t, c) {
			for at := range file {
				for _, mask := range []byte{0x01, 0x80, 0xff} {
					bad := bytes.Clone(file)
					bad[at] ^= mask
					refused(t, k, kind, bad, "flip", at)
				}
			}
		}
	})
}

// TestEveryLength: a file cut anywhere, or with bytes after its end, is refused (report 13).
func TestEveryLength(t *testing.T) {
	compressions(t, func(t *testing.T, c Compression) {
		k := newKit[string, string](t)
		for kind, file := range samples(t, c) {
			for n := range file {
				refused(t, k, kind, file[:n], "cut", n)
			}
			for _, more := range [][]byte{{0}, {0xff}, make([]byte, frameLen), file} {
				refused(t, k, kind, append(bytes.Clone(file), more...), "extended", len(file))
			}
		}
	})
}

// TestCutAtBlockEdge: a file without its last blocks, or without its footer, is not whole, though every checksum in it is.
func TestCutAtBlockEdge(t *testing.T) {
	k := newKit[string, int64](t)
	m := newMap[string, int64](t)
	for i := range 2*blockRecords + 5 {
		require.NoError(t, m.Put(word(i), int64(i), 1))
	}
	file, sum := k.snapshot(info(1, None), m)
	edges := frames(t, file)
	require.Len(t, edges, 4)
	footer := file[edges[3]:]
	for _, at := range edges {
		_, err := k.dec.Load(bytes.NewReader(file[:at]), "f", want(Snapshot, 1), newMap[string, int64](t))
		assert.ErrorIs(t, err, ErrCorrupt, "cut at %d", at)
		if at == edges[3] {
			continue
		}
		_, err = k.dec.Load(bytes.NewReader(append(bytes.Clone(file[:at]), footer...)), "f", want(Snapshot, 1), newMap[string, int64](t))
		assert.ErrorIs(t, err, ErrCorrupt, "blocks missing before the footer, at %d", at)
	}
	// Blocks in another order.
	a, b := file[edges[0]:edges[1]], file[edges[1]:edges[2]]
	swapped := bytes.Join([][]byte{file[:edges[0]], b, a, file[edges[2]:]}, nil)
	require.EqualValues(t, sum.Size, len(swapped))
	_, err := k.dec.Load(bytes.NewReader(swapped), "f", want(Snapshot, 1), newMap[string, int64](t))
	assert.ErrorIs(t, err, ErrCorrupt)
}

// TestCorruptErrorTellsWhere: an operator finds the file and the place (report 12 v).
func TestCorruptErrorTellsWhere(t *testing.T) {
	file := samples(t, None)[Delta]
	at := frames(t, file)[0]
	file[at+40]++
	k := newKit[string, string](t)
	_, err := k.dec.Load(bytes.NewReader(file), "state/counts/3/2.7.delta", want(Delta, 2), newMap[string, string](t))
	var c *CorruptError
	require.ErrorAs(t, err, &c)
	assert.Equal(t, CorruptError{Path: "state/counts/3/2.7.delta", Operator: "counts", Partition: 3, Version: 2,
		Offset: at, Reason: "the checksum of the block differs"}, *c)
	assert.ErrorContains(t, err, `state/counts/3/2.7.delta (operator "counts", partition 3, version 2) is damaged at byte`)
}
