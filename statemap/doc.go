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
package statemap
