package statemap

// Dump is a version as plain data, for Export and Import.
type Dump[K comparable, S any] struct {
	Own   []DeltaEntry[K, S] // what the version itself changed, tombstones too
	Base  []DumpEntry[K, S]  // all keys of the version before
	Count int                // distinct keys in Base: the end mark
}

// DumpEntry is a key with its state and update time.
type DumpEntry[K comparable, S any] struct {
	Key   K
	State S
	Time  int64
}

// Export gives the version as plain data: its own changes, if they are still
// kept (see Delta), and all that stood before them. Error: ErrReleased.
func (m *Map[K, S]) Export() (Dump[K, S], error) {
	if m.h == nil {
		return Dump[K, S]{}, nil
	}
	return m.h.export()
}
