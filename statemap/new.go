package statemap

// New makes a table and gives its first version, open for writing. Errors:
// ErrThreshold, ErrCapacity.
func New[K comparable, S any](o Options[K]) (*Map[K, S], error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Map[K, S]{h: newEngine[K, S](o)}, nil
}

// Import makes a table from a dump: the result has the dump's base as the
// version before (which has no handle) and its own entries as changes, and is
// open. Errors: as New, and ErrDumpCount.
func Import[K comparable, S any](o Options[K], d Dump[K, S]) (*Map[K, S], error) {
	return nil, nil
}

func newEngine[K comparable, S any](o Options[K]) engine[K, S] { panic("todo") }

type blockScratch struct{}
