package statemap

import "fmt"

// Defaults of Options.
const (
	DefaultDeltaChainThreshold = 20
	DefaultInitialCapacity     = 64
)

// Options configures a table made by New or Import; copies and clones inherit
// it. The zero value is valid.
type Options[K comparable] struct {
	// DeltaChainThreshold is the number of versions by which a live handle may
	// trail the newest one before ShouldCompact reports true and, unless
	// NoAutoDetach is set, before it is moved to a table of its own.
	// 0 means 20; less is ErrThreshold.
	DeltaChainThreshold int

	// InitialCapacity is the number of keys that the index is made for at
	// once. 0 means 64 (which costs nothing before the first key); less is
	// ErrCapacity.
	InitialCapacity int

	// Hash gives the hash of a key: the one that callers of Resolve pass. It
	// must be a function of the key alone (equal keys, equal hashes) and is
	// called while the table is locked, so it must not use the map; it must not
	// keep the key. Nil means a hash seeded for this table, see Map.Hash.
	Hash func(K) uint64

	// Secret is mixed into every hash, so that keys that collide on purpose
	// in a known hash spread differently in every run. 0 means a random one.
	Secret uint64

	// Background runs a function that detaches old versions beside the
	// writer; it may start a goroutine for it or queue it, and must run it in
	// the end. Nil means inline, within Copy. This is the only way by which
	// the package's code comes to run on another goroutine.
	Background func(func())

	// NoAutoDetach leaves old handles on their chains however long these
	// grow; only Compact shortens them.
	NoAutoDetach bool
}

func (o Options[K]) withDefaults() (Options[K], error) {
	if o.DeltaChainThreshold < 0 {
		return o, fmt.Errorf("%w (got %d)", ErrThreshold, o.DeltaChainThreshold)
	}
	if o.InitialCapacity < 0 {
		return o, fmt.Errorf("%w (got %d)", ErrCapacity, o.InitialCapacity)
	}
	if o.DeltaChainThreshold == 0 {
		o.DeltaChainThreshold = DefaultDeltaChainThreshold
	}
	if o.InitialCapacity == 0 {
		o.InitialCapacity = DefaultInitialCapacity
	}
	return o, nil
}
