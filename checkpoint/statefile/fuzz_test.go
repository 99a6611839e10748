package statefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// FuzzRead gives the reader arbitrary files: an error of this package's, or rows, never a panic.
func FuzzRead(f *testing.F) {
	for _, c := range []Compression{None, S2, Zstd} {
		for _, file := range samples(f, c) {
			f.Add(file)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		info, _, err := Verify(bytes.NewReader(file), "f", nil)
		if err != nil {
			if !named(err) {
				t.Fatalf("unnamed error: %v", err)
			}
			return
		}
		k := newKit[string, string](t)
		_, err = k.dec.Load(bytes.NewReader(file), "f", Want{Kind: info.Kind, Operator: info.Operator, Partition: info.Partition,
			Version: info.Version, Deadlines: info.Deadlines}, newMap[string, string](t))
		if err != nil && !named(err) {
			t.Fatalf("unnamed error: %v", err)
		}
	})
}

// FuzzBlock gives the decoder arbitrary blocks under right checksums, which FuzzRead cannot reach.
func FuzzBlock(f *testing.F) {
	f.Add([]byte{0, 2, 'k', 1, 0, 0, 0, 1, 4}, uint16(1), false, uint8(0))
	f.Add([]byte{1, 2, 3, 'k', 'l', 0, 1, 5, 0, 2, 0, 1, 4}, uint16(2), true, uint8(1))
	f.Add([]byte{0, 3, 'k', 'l'}, uint16(2), false, uint8(2))
	f.Fuzz(func(t *testing.T, raw []byte, count uint16, deadlines bool, how uint8) {
		i := info(1, Compression(how%3))
		i.Kind, i.Deadlines = Delta, deadlines
		n := int(count)%blockRecords + 1
		rd, err := NewReader(bytes.NewReader(forge(t, i, raw, n)), "f", nil)
		if err != nil {
			t.Fatal(err)
		}
		var fr Frame
		if err := rd.Next(&fr); err != nil {
			t.Fatal(err)
		}
		var b Block
		if err := b.Decode(&fr); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again(t, &b, i)
	})
}

// again writes the rows of a decoded block and demands that they come back.
func again(t *testing.T, b *Block, i Info) {
	k := newKit[string, string](t)
	var out bytes.Buffer
	if err := k.enc.Begin(&out, i); err != nil {
		t.Fatal(err)
	}
	rows := func(b *Block) (all []byte) {
		for n := range b.Len() {
			s, _ := b.State(n)
			all = binary.AppendVarint(all, b.Time(n))
			all = append(append(append(all, b.Key(n)...), 0, byte(b.kinds[n])), s...)
		}
		return all
	}
	for n := range b.Len() {
		var err error
		if b.Removed(n) {
			err = k.enc.Remove(string(b.Key(n)))
		} else {
			s, _ := b.State(n)
			err = k.enc.Put(string(b.Key(n)), string(s), b.Time(n))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.enc.End(); err != nil {
		t.Fatal(err)
	}
	rd, err := NewReader(&out, "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	var fr Frame
	var c Block
	if err := rd.Next(&fr); err != nil {
		t.Fatal(err)
	}
	if err := c.Decode(&fr); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(rows(b), rows(&c)) {
		t.Fatal("the rows differ")
	}
	if err := rd.Next(&fr); err != io.EOF {
		t.Fatal(err)
	}
}
