package statemap

// BlockSize is the greatest number of records of one Block.
const BlockSize = 64

const blockMask = BlockSize - 1

// What a block knows of an entry.
const (
	flagLive  = metaLive // the key has a state now, as the records of the block left it
	flagOwn   = metaOwn  // the state is this version's own, not shared with older ones
	flagDirty = 4        // a record of the block wrote the key: Apply has work to do
	flagState = 8        // … and gave or took its state, so Apply writes not only the time
)

// A Block is the scratch of up to BlockSize records of one map: what Resolve
// found, and what the records did since, kept aside until Apply. It is reused
// from block to block and allocates nothing. It belongs to the map's writer.
//
// Records of the same key share one entry, that of the first of them, so a
// record sees what earlier records of the block did to its key. Load, Set,
// Delete and Touch are small enough to be inlined; i counts the records given
// to Resolve from 0, and an i outside is a caller's fault that is not detected.
type Block[K comparable, S any] struct {
	ent   [BlockSize]uint8 // record → entry: the first record of the same key
	flags [BlockSize]uint8 // by entry
	order [BlockSize]uint8 // dirty entries in the order of their first write
	dirty int              // how many of order
	n     int              // records resolved; 0 when there is nothing to apply

	slot  [BlockSize]uint32 // by entry: slot number + 1; 0 for a key without a slot
	state [BlockSize]S      // by entry
	time  [BlockSize]int64  // by entry

	hashes []uint64   // the caller's, until Apply
	keys   []K        // the caller's, until Apply
	owner  *Map[K, S] // the map that resolved the block
	seq    uint64     // the owner's write count at that time

	ins  [BlockSize]uint32 // slots that the last Apply made live
	nins int

	scratch blockScratch
}

// Load gives record i's state. exists tells whether the key has one (s is the
// zero value otherwise); first tells that this version has not given the key a
// state yet, so s may be shared with older versions and must not be changed in
// place.
func (b *Block[K, S]) Load(i int) (s S, exists, first bool) {
	e := b.ent[i&blockMask] & blockMask
	f := b.flags[e]
	return b.state[e], f&flagLive != 0, f&flagOwn == 0
}

// Time gives the update time of record i's key, as earlier records of the
// block left it; it means nothing if the key has no state.
func (b *Block[K, S]) Time(i int) int64 {
	return b.time[b.ent[i&blockMask]&blockMask]
}

// Set gives record i's key the state s with update time t.
func (b *Block[K, S]) Set(i int, s S, t int64) {
	e := b.ent[i&blockMask] & blockMask
	b.state[e] = s
	b.time[e] = t
	f := b.flags[e]
	if f&flagDirty == 0 {
		b.order[b.dirty&blockMask] = e
		b.dirty++
	}
	b.flags[e] = f | flagLive | flagOwn | flagDirty | flagState
}

// Delete removes record i's key. A key without a state is left alone.
func (b *Block[K, S]) Delete(i int) {
	e := b.ent[i&blockMask] & blockMask
	f := b.flags[e]
	if f&flagLive == 0 {
		return
	}
	var zero S
	b.state[e] = zero
	if f&flagDirty == 0 {
		b.order[b.dirty&blockMask] = e
		b.dirty++
	}
	b.flags[e] = f&^flagLive | flagOwn | flagDirty | flagState
}

// Touch sets the update time of record i's key to t and leaves its state. A
// key without a state is left alone.
func (b *Block[K, S]) Touch(i int, t int64) {
	e := b.ent[i&blockMask] & blockMask
	f := b.flags[e]
	if f&flagLive == 0 {
		return
	}
	b.time[e] = t
	if f&flagDirty == 0 {
		b.order[b.dirty&blockMask] = e
		b.dirty++
	}
	b.flags[e] = f | flagDirty
}

// Inserted gives the slots that the last Apply made live (keys that had no
// state before the block), in record order: what an expiry index must learn.
// It is valid until the next Apply.
func (b *Block[K, S]) Inserted() []uint32 { return b.ins[:b.nins] }

// Slot gives, after Apply, the slot of record i's key; ok is false if the key
// has none.
func (b *Block[K, S]) Slot(i int) (slot uint32, ok bool) {
	s := b.slot[b.ent[i&blockMask]&blockMask]
	return s - 1, s != 0
}
