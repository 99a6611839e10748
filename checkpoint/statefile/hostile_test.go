package statefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
)

// forge makes a file whose checksums are right from a block that no encoder wrote.
func forge(t testing.TB, i Info, raw []byte, count int) []byte {
	var out bytes.Buffer
	var w writer
	i.KeyCodec, i.StateCodec = "string", "int64"
	require.NoError(t, w.begin(&out, i))
	require.NoError(t, w.frame(raw, count, 0))
	_, err := w.end()
	require.NoError(t, err)
	return out.Bytes()
}

// TestForgedBlocks: right checksums around wrong columns give an error, never a panic.
func TestForgedBlocks(t *testing.T) {
	i := info(1, None)
	i.Kind = Delta
	d := i
	d.Deadlines = true
	good := []byte{0, 2, 'k', 1, 0, 0, 0, 1, 4}
	huge := binary.AppendUvarint(nil, 1<<40)
	for name, c := range map[string]struct {
		info Info
		raw  []byte
		text string
	}{
		"empty":                {i, nil, "cut off"},
		"column form":          {i, []byte{7, 2}, "unknown form"},
		"same cut off":         {i, []byte{0}, "cut off"},
		"each cut off":         {i, []byte{1, 0x80}, "cut off"},
		"key too long":         {i, append([]byte{0}, huge...), "key 0 ends after the block"},
		"no unit":              {i, good[:3], "unit"},
		"unit 0":               {i, []byte{0, 2, 'k', 0, 0, 0, 0, 1, 4}, "unit"},
		"ages cut off":         {i, good[:4], "cut off"},
		"states cut off":       {i, good[:6], "cut off"},
		"state too long":       {i, append(append([]byte{}, good[:6]...), append([]byte{0}, huge...)...), "state 0 ends after the block"},
		"bytes left":           {i, append(append([]byte{}, good...), 0), "1 bytes follow the last state"},
		"state of another":     {i, []byte{0, 2, 'k', 1, 0, 0, 0, 0}, "state 0 of the block cannot be decoded"},
		"deadline form":        {d, []byte{0, 2, 'k', 0, 3}, "form of a deadline"},
		"deadline forms cut":   {d, []byte{0, 2, 'k'}, "cut off"},
		"deadline unit":        {d, []byte{0, 2, 'k', 0, 1, 0}, "unit"},
		"deadline is negative": {d, append(append([]byte{0, 2, 'k', 0, 1, 1, 0}, binary.AppendUvarint(nil, zigzag(-d.BatchTime-1))...), 0, 0), "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit[string, int64](t)
			w := want(Delta, 1)
			w.Deadlines = c.info.Deadlines
			_, err := k.dec.Load(bytes.NewReader(forge(t, c.info, c.raw, 1)), "f", w, newMap[string, int64](t))
			require.ErrorIs(t, err, ErrCorrupt)
			assert.ErrorContains(t, err, c.text)
		})
	}
	k := newKit[string, int64](t)
	m := newMap[string, int64](t)
	k.load(forge(t, i, good, 1), want(Delta, 1), m)
	assert.Equal(t, 1, m.Len(), "the block that the others are made from is good")

	s := i
	s.Kind = Snapshot
	_, err := k.dec.Load(bytes.NewReader(forge(t, s, []byte{0, 3, 'k'}, 1)), "f", want(Snapshot, 1), newMap[string, int64](t))
	assert.ErrorContains(t, err, "1 tombstones in a snapshot")
	twice := []byte{0, 2, 'k', 'k', 1, 0, 0, 0, 1, 4, 4}
	_, err = k.dec.Load(bytes.NewReader(forge(t, s, twice, 2)), "f", want(Snapshot, 1), newMap[string, int64](t))
	assert.ErrorContains(t, err, "its 2 entries have 1 distinct keys")
	tomb := forge(t, i, []byte{0, 3, 'k'}, 1) // its footer counts none
	_, err = k.dec.Load(bytes.NewReader(tomb), "f", want(Delta, 1), newMap[string, int64](t))
	assert.ErrorContains(t, err, "its footer counts 0 tombstones of 1")
	_, _, err = Verify(bytes.NewReader(tomb), "f", nil)
	assert.ErrorContains(t, err, "its footer counts 0 tombstones of 1")
}

// TestForgedKey: bytes that no key has.
func TestForgedKey(t *testing.T) {
	k := newKit[bool, int64](t)
	var out bytes.Buffer
	var w writer
	i := info(1, None)
	i.Kind, i.KeyCodec, i.StateCodec = Delta, "bool", "int64"
	require.NoError(t, w.begin(&out, i))
	require.NoError(t, w.frame([]byte{0, 2, 9, 1, 0, 0, 0, 1, 4}, 1, 0))
	_, err := w.end()
	require.NoError(t, err)
	_, err = k.dec.Load(&out, "f", want(Delta, 1), newMap[bool, int64](t))
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorIs(t, err, codec.ErrCorrupt)
}

// withFrame puts a frame's head, with a right checksum, before a body.
func withFrame(head []byte, count, raw, body uint32, bytes []byte) []byte {
	var h [frameLen]byte
	binary.LittleEndian.PutUint32(h[0:], count)
	binary.LittleEndian.PutUint32(h[4:], raw)
	binary.LittleEndian.PutUint32(h[8:], body)
	binary.LittleEndian.PutUint32(h[28:], crc32.Update(crc32.Checksum(h[:28], castagnoli), castagnoli, bytes))
	return append(append(append([]byte{}, head...), h[:]...), bytes...)
}

// TestHostileLengths: lengths that the bytes do not bear out cost no memory (report 34).
func TestHostileLengths(t *testing.T) {
	for _, c := range []Compression{None, S2, Zstd} {
		full := samples(t, c)[Snapshot]
		head := full[:frames(t, full)[0]]
		some := bytes.Repeat([]byte{1}, 2000)
		bomb := binary.AppendUvarint(nil, uint64(len(some)-10))
		bomb = append(bomb, some...)
		bad := [][]byte{
			withFrame(head, 1, maxBlock, maxBlock, some),
			withFrame(head, 1, maxBlock, maxBlock/64, some),
			withFrame(head, 1, 1<<31, 2000, some),
			withFrame(head, blockRecords+1, 2000, 2000, some),
			withFrame(head, 1<<31, 2000, 2000, some),
			withFrame(head, 1, 64*2000, 2000, some),
			withFrame(head, 1, 64*2000, uint32(len(bomb)), bomb),
			withFrame(head, blockRecords, 2000, 2000, some),
			append([]byte(magic), 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff),
			append([]byte(magic), 1, 0, 0, 0, 0, 0, 0, 0),
		}
		for n, file := range bad {
			k := newKit[string, string](t)
			m := newMap[string, string](t)
			_, err := k.dec.Load(bytes.NewReader(full), "f", want(Snapshot, 1), newMap[string, string](t)) // warms up
			require.NoError(t, err)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = k.dec.Load(bytes.NewReader(file), "f", want(Snapshot, 1), m)
			runtime.ReadMemStats(&after)
			assert.ErrorIs(t, err, ErrCorrupt, "%v, file %d", c, n)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "%v, file %d", c, n)
		}
	}
}

// TestHeads: heads with right checksums that no writer writes.
func TestHeads(t *testing.T) {
	good := info(1, None)
	good.Kind = Delta
	fields := good.appendFields(nil)
	head := func(format uint32, fields []byte) []byte {
		b := binary.LittleEndian.AppendUint32([]byte(magic), format)
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(fields))), fields...)
		return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	}
	_, err := NewReader(bytes.NewReader(head(1, fields)), "f", nil)
	require.NoError(t, err)
	bad := [][]byte{head(0, fields), head(1, append(bytes.Clone(fields), 0))}
	for n := range fields {
		bad = append(bad, head(1, fields[:n]))
	}
	for at, v := range map[int]byte{0: 9, 1: 9, 2: 9} {
		f := bytes.Clone(fields)
		f[at] = v
		bad = append(bad, head(1, f))
	}
	huge := binary.AppendUvarint(bytes.Clone(fields[:3]), 1<<63)
	bad = append(bad, head(1, append(huge, fields[4:]...)))
	far := binary.AppendUvarint(bytes.Clone(fields[:3]), 1<<40)
	bad = append(bad, head(1, append(far, fields[4:]...)))
	for n, b := range bad {
		_, err := NewReader(bytes.NewReader(b), "f", nil)
		assert.ErrorIs(t, err, ErrCorrupt, "head %d", n)
	}
}

// TestReadErrors: a store's error is not taken for damage, and keeps its cause.
func TestReadErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	file := samples(t, None)[Snapshot]
	for n := range len(file) + 1 {
		_, _, err := Verify(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(broken)), "f", nil)
		require.ErrorIs(t, err, broken, "after %d bytes", n)
		require.NotErrorIs(t, err, ErrCorrupt)
	}
	_, _, err := Verify(iotest.OneByteReader(bytes.NewReader(file)), "f", nil)
	require.NoError(t, err)
	rd, err := NewReader(bytes.NewReader(nil), "f", nil)
	require.Nil(t, rd)
	require.ErrorIs(t, err, ErrCorrupt)
}
