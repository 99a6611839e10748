// Package statemap is a versioned hash map: the states of one partition of a
// stateful operator, one version per batch.
//
// # What it is
//
// A table holds the newest version in place, in dense slots found through an
// open-hash index. A version that is being built records, for every slot it
// writes first, what stood there: its undo list. So Copy, which seals a version
// and begins the next, costs O(1); reads and writes of the newest version never
// walk a chain; an older handle reads through the undo lists of the versions
// after it, until Release; Abort walks the list backwards; and the same list is
// the version's delta, in the order of first writes.
//
// # Hot path
//
// One writer goroutine per table updates in blocks of up to BlockSize records,
// so that the cache misses of a block overlap:
//
//	var b statemap.Block[K, S]            // reused; nothing is allocated per block
//	m.Resolve(&b, hashes[i:j], keys[i:j]) // look all up; no lock is held afterwards
//	for i := range j - i {                // user code runs here
//		s, exists, first := b.Load(i)     // sees what earlier records of the block did
//		…                                 // first: s may be shared with older versions
//		b.Set(i, s, t)                    // or b.Delete(i), or b.Touch(i, t), or nothing
//	}
//	m.Apply(&b)                           // under the lock, in record order
//	for _, slot := range b.Inserted() {}  // what an expiry index must learn
//
// A record that fails needs no clean-up: what was not applied never happened,
// and a block may be resolved again.
//
// # Who may do what
//
// Slots, index and key memory are changed by the writer alone, under the
// table's write lock, so the writer looks up without a lock. Readers of older
// versions, on any goroutine, take the read lock for one lookup or for a few
// hundred slots at a time. No lock is held while a caller's code runs (but for
// Options.Hash), so a user function may read an older version of the map it is
// called for. Release, Compact and reading need no coordination with the writer.
// Slots of removed keys are freed by the writer at the next Copy after the last
// version that needs them is gone.
//
// # Long chains
//
// An undo list is kept while a handle older than its version lives. When the
// oldest handle trails the newest version by Options.DeltaChainThreshold, the
// newest sealed version is copied to a table of its own and all older handles
// move there with their lists (Options.Background says where that work runs);
// so V pinned versions cost at most V/threshold more tables. Slot numbers stay,
// so readers under way go on.
//
// # Memory
//
// A string key is copied into an arena and stored as a number; other keys stand
// in their slot, with their strings cloned. Where key and state hold no
// pointers, neither do slots and undo lists, and the collector skips them. With
// 16-byte keys and int64 states a key takes about 70 bytes, index included.
// Freed slots and key bytes are reused; when three quarters of the slots are
// free, the next version begins in a smaller table (Layout tells).
//
// # What it does not do
//
// It does not clone states: a state with pointers that is changed in place
// changes in every version that shares it (see first above). It does not keep keys
// in order (Sorted makes one, and keeps it as a hint for the next), expire them, or
// write files; it starts no goroutine and knows no clock.
package statemap
