package statefile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOtherLineIsRefused: a whole file with another chain hash than the committed one never loads.
func TestOtherLineIsRefused(t *testing.T) {
	k := newKit[string, int64](t)
	m := base(t)
	i := info(1, None)
	i.Chain = Sum{1}
	delta, _ := k.delta(i, m)
	snapshot, _ := k.snapshot(i, m)
	w := want(Delta, 1)
	w.Chain = Sum{9}
	_, err := k.dec.Load(bytes.NewReader(delta), "f", w, newMap[string, int64](t))
	require.ErrorIs(t, err, ErrMismatch)
	w = want(Delta, 1)
	w.Checksum = Sum{9}
	_, err = k.dec.Load(bytes.NewReader(delta), "f", w, newMap[string, int64](t))
	require.ErrorIs(t, err, ErrMismatch)
	w = want(Snapshot, 1)
	w.Chain = Sum{9}
	into := newMap[string, int64](t)
	_, err = k.dec.Load(bytes.NewReader(snapshot), "f", w, into)
	require.ErrorIs(t, err, ErrMismatch)
	assert.ErrorContains(t, err, "chain hash is 01000000000000000000000000000000, not 09000000000000000000000000000000")
	assert.Zero(t, into.Len(), "a snapshot's chain hash is compared before anything is loaded")
}

// TestOtherFileIsRefused: a file in another one's place is named as what it is.
func TestOtherFileIsRefused(t *testing.T) {
	k := newKit[string, int64](t)
	file, _ := k.delta(info(1, None), base(t))
	for what, change := range map[string]func(*Want){
		"kind":          func(w *Want) { w.Kind = Snapshot },
		"operator":      func(w *Want) { w.Operator = "others" },
		"partition":     func(w *Want) { w.Partition = 4 },
		"version":       func(w *Want) { w.Version = 2 },
		"form of times": func(w *Want) { w.Deadlines = true },
	} {
		w := want(Delta, 1)
		change(&w)
		_, err := k.dec.Load(bytes.NewReader(file), "f", w, newMap[string, int64](t))
		var e *MismatchError
		require.ErrorAs(t, err, &e, what)
		assert.Equal(t, what, e.What)
	}
	_, err := newKit[int64, int64](t).dec.Load(bytes.NewReader(file), "f", want(Delta, 1), newMap[int64, int64](t))
	assert.ErrorContains(t, err, `its key codec is "string", not "int64"`)
	_, err = newKit[string, float64](t).dec.Load(bytes.NewReader(file), "f", want(Delta, 1), newMap[string, float64](t))
	assert.ErrorContains(t, err, `its state codec is "int64", not "float64"`)

	full := base(t)
	snapshot, _ := k.snapshot(info(1, None), full)
	_, err = k.dec.Load(bytes.NewReader(snapshot), "f", want(Snapshot, 1), full)
	assert.ErrorContains(t, err, "a snapshot needs an empty map, this one has 1000 keys")
}

// TestNewerFormat: a file of a later release is told from a damaged one, with both numbers.
func TestNewerFormat(t *testing.T) {
	head := append([]byte(magic), 7, 0, 0, 0, 3, 0, 0, 0, 'n', 'e', 'w')
	file := binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	_, _, err := Verify(bytes.NewReader(file), "f", nil)
	require.ErrorIs(t, err, ErrFormat)
	assert.EqualError(t, err, "state file f has format 7, this program reads formats 1 to 1: use a newer release")
	assert.NotErrorIs(t, err, ErrCorrupt)
	file[len(head)]++
	_, _, err = Verify(bytes.NewReader(file), "f", nil)
	assert.ErrorIs(t, err, ErrCorrupt)
}

// TestSumText: sums go through JSON, as commits hold them.
func TestSumText(t *testing.T) {
	s := Chain(Sum{1}, Sum{2})
	b, err := json.Marshal(s)
	require.NoError(t, err)
	var back Sum
	require.NoError(t, json.Unmarshal(b, &back))
	assert.Equal(t, s, back)
	assert.ErrorContains(t, back.UnmarshalText([]byte("12")), "32 hexadecimal digits")
	assert.ErrorContains(t, back.UnmarshalText([]byte("zz000000000000000000000000000000")), "invalid byte")
	assert.NotEqual(t, Chain(Sum{1}, Sum{2}), Chain(Sum{2}, Sum{1}))
}

// TestKeyID: the names of key encodings, which stand in files.
func TestKeyID(t *testing.T) {
	type name string
	assert.Equal(t, "string", KeyID[name]())
	assert.Equal(t, "int64", KeyID[int]())
	assert.Equal(t, "uint64", KeyID[uintptr]())
	assert.Equal(t, "[4]uint8", KeyID[[4]byte]())
	assert.Equal(t, "(string,(int32,bool))", KeyID[struct {
		A name
		_ int
		b struct {
			c int32
			d bool
		}
	}]())
}

// TestCompressionNames: the names that options and logs use.
func TestCompressionNames(t *testing.T) {
	compressions(t, func(t *testing.T, c Compression) {
		back, err := ParseCompression(c.String())
		require.NoError(t, err)
		assert.Equal(t, c, back)
	})
	_, err := ParseCompression("lz4")
	assert.EqualError(t, err, `statefile: compression "lz4" is unknown; use none, s2 or zstd`)
	assert.Equal(t, "compression 9", Compression(9).String())
	assert.Equal(t, "kind 9", Kind(9).String())
}
