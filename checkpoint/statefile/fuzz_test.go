package statefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"
)

// repair makes the checksums of head, frames and footer right, as far as the lengths lead.
func repair(file []byte) {
	crc := func(from, to int) {
		if to >= from && to+4 <= len(file) {
			binary.LittleEndian.PutUint32(file[to:], crc32.Checksum(file[from:to], castagnoli))
		}
	}
	if len(file) < prefixLen {
		return
	}
	at := prefixLen + int(binary.LittleEndian.Uint32(file[prefixLen-4:]))
	crc(0, at)
	for at += 4; at+frameLen <= len(file); {
		if binary.LittleEndian.Uint32(file[at:]) == 0 {
			crc(at, at+footerLen-4)
			return
		}
		end := at + frameLen + int(binary.LittleEndian.Uint32(file[at+8:]))
		if end > len(file) {
			return
		}
		binary.LittleEndian.PutUint32(file[at+28:], crc32.Update(crc32.Checksum(file[at:at+28], castagnoli), castagnoli, file[at+frameLen:end]))
		at = end
	}
}

// FuzzRead gives the reader arbitrary files, half of them with their checksums made right: an error of this package's,
// or rows, never a panic.
func FuzzRead(f *testing.F) {
	for _, c := range []Compression{None, S2, Zstd} {
		for _, file := range samples(f, c) {
			f.Add(file, false)
			f.Add(file, true)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte, right bool) {
		if file = bytes.Clone(file); right {
			repair(file)
		}
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
