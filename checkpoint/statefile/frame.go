package statefile

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Frame is a block as it stands in the file, its checksum compared. It keeps
// its buffer from one Reader.Next to the next, and is independent of other
// frames: a goroutine may decode it while the reader fills another one.
type Frame struct {
	at     *place
	info   *Info
	offset int64
	head   [frameLen]byte
	body   []byte
}

func (f *Frame) count() int   { return int(binary.LittleEndian.Uint32(f.head[0:])) }
func (f *Frame) rawLen() int  { return int(binary.LittleEndian.Uint32(f.head[4:])) }
func (f *Frame) bodyLen() int { return int(binary.LittleEndian.Uint32(f.head[8:])) }

func (f *Frame) corrupt(reason string, cause error) error {
	return f.at.corrupt(f.offset, reason, cause)
}

// checkHead refuses lengths that no writer writes, before anything is read.
func (f *Frame) checkHead() error {
	count, raw, body := f.count(), f.rawLen(), f.bodyLen()
	if count > blockRecords || raw > maxBlock || body > raw || body < minBody(raw) {
		return f.corrupt(fmt.Sprintf("a block cannot have %d records, %d bytes and %d in the file", count, raw, body), nil)
	}
	return nil
}

// Block is a frame decoded into rows. It is reused, allocates nothing per row,
// and belongs to one goroutine at a time.
type Block struct {
	count  int
	tombs  int
	keys   []byte
	states []byte

	keyEnd   [blockRecords]uint32 // where the row's key ends in keys
	stateEnd [blockRecords]uint32 // where its state ends in states; rows without one have no bytes
	times    [blockRecords]int64
	kinds    [blockRecords]rowKind

	forms [blockRecords]uint64
	nums  [blockRecords]uint64
	dec   decompressor
}

type rowKind uint8

const (
	rowState     rowKind = iota // an entry with a state
	rowNoState                  // an entry with a deadline alone
	rowTombstone                // a removed key
)

// Len is the number of rows.
func (b *Block) Len() int { return b.count }

// Key gives the canonical bytes of row i's key. They are valid until the next
// Decode, and until the frame is filled anew; so are those of State.
func (b *Block) Key(i int) []byte {
	at := uint32(0)
	if i > 0 {
		at = b.keyEnd[i-1]
	}
	return b.keys[at:b.keyEnd[i]]
}

// State gives the encoded state of row i; ok is false for tombstones and for
// entries that have only a deadline.
func (b *Block) State(i int) (state []byte, ok bool) {
	at := uint32(0)
	if i > 0 {
		at = b.stateEnd[i-1]
	}
	return b.states[at:b.stateEnd[i]], b.kinds[i] == rowState
}

// Time gives the time of row i: of the last update, or a deadline as in
// times.go. It is 0 for tombstones.
func (b *Block) Time(i int) int64 { return b.times[i] }

// Removed tells that row i is a tombstone.
func (b *Block) Removed(i int) bool { return b.kinds[i] == rowTombstone }

// Decode decodes a frame. Error: *CorruptError.
func (b *Block) Decode(f *Frame) error {
	b.count, b.tombs = 0, 0
	b.dec.buf = keep(b.dec.buf)
	raw, err := b.dec.decompress(f.info.Compression, f.body, f.rawLen())
	if err != nil {
		return f.corrupt("the block cannot be decompressed", err)
	}
	if sum := sumOf(raw); string(sum[:]) != string(f.head[12:28]) {
		return f.corrupt("the sum of the decompressed block differs", nil)
	}
	if err := b.columns(f.info, f.count(), raw); err != nil {
		b.count = 0
		return f.corrupt("the block cannot be decoded", err)
	}
	return nil
}

func (b *Block) columns(info *Info, n int, raw []byte) error {
	nums := b.nums[:n]
	raw, err := readColumn(raw, nums)
	if err != nil {
		return err
	}
	end := uint64(0)
	for i, v := range nums {
		b.kinds[i] = rowKind(v&1) * rowTombstone
		b.tombs += int(v & 1)
		if end += v >> 1; v>>1 > uint64(len(raw)) || end > uint64(len(raw)) {
			return fmt.Errorf("key %d ends after the block", i)
		}
		b.keyEnd[i] = uint32(end)
	}
	if b.tombs > 0 && info.Kind != Delta {
		return fmt.Errorf("%d tombstones in a %v", b.tombs, info.Kind)
	}
	b.keys, raw = raw[:end], raw[end:]
	live := n - b.tombs
	clear(b.forms[:live])
	if raw, err = readTimes(raw, info, b.times[:live], b.forms[:live], b.nums[:]); err != nil {
		return err
	}
	b.spread(n, live)
	return b.readStates(n, raw)
}

// spread moves times and forms from the entries to their rows.
func (b *Block) spread(n, live int) {
	if b.tombs == 0 {
		for i, f := range b.forms[:n] {
			if f == formDeadline {
				b.kinds[i] = rowNoState
			}
		}
		return
	}
	for i, j := n-1, live-1; i >= 0; i-- {
		if b.kinds[i] == rowTombstone {
			b.times[i] = 0
			continue
		}
		b.times[i] = b.times[j]
		if b.forms[j] == formDeadline {
			b.kinds[i] = rowNoState
		}
		j--
	}
}

func (b *Block) readStates(n int, raw []byte) error {
	with := 0
	for _, k := range b.kinds[:n] {
		if k == rowState {
			with++
		}
	}
	sizes := b.nums[:with]
	raw, err := readColumn(raw, sizes)
	if err != nil {
		return err
	}
	end := uint64(0)
	for i, k := range b.kinds[:n] {
		if k == rowState {
			if sizes[0] > math.MaxUint32 || end+sizes[0] > uint64(len(raw)) {
				return fmt.Errorf("state %d ends after the block", i)
			}
			end += sizes[0]
			sizes = sizes[1:]
		}
		b.stateEnd[i] = uint32(end)
	}
	if end != uint64(len(raw)) {
		return fmt.Errorf("%d bytes follow the last state", uint64(len(raw))-end)
	}
	b.states, b.count = raw, n
	return nil
}
