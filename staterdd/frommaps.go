package staterdd

import (
	"errors"
	"fmt"

	"github.com/statemill/statemill/statemap"
)

// ErrMaps: the maps given to FromMaps are not one open map per partition.
var ErrMaps = errors.New("the state maps do not make a version")

// NewMap makes an empty, open state map as the operator's partitions have them: for a loader to
// fill, and then for FromMaps. It may be called from several goroutines; each map belongs to one.
func (op *Operator[K, V, S, M]) NewMap() (*statemap.Map[K, S], error) {
	m, err := statemap.New[K, S](op.maps)
	if err != nil {
		return nil, fmt.Errorf("operator %s: %w", op.name, err)
	}
	return m, nil
}

// FromMaps makes a sealed version of maps that were filled from outside: maps[i], made by NewMap
// and still open, is all of partition i after batch b. The version owns the maps from now on.
// Keys are not checked for standing in the partition that the partitioner gives them.
//
// What follows is what would follow after batch b itself: the next batch must be later than b,
// expiry indexes are built from all entries, so a key that became due since is called once, in
// the next batch, after its data.
func (op *Operator[K, V, S, M]) FromMaps(b Batch, maps []*statemap.Map[K, S]) (*MapWithStateRDD[K, S, M], error) {
	if len(maps) != op.partitioner.Partitions() {
		return nil, fmt.Errorf("operator %s epoch %d: %w: %d maps for %d partitions", op.name, b.Epoch, ErrMaps, len(maps), op.partitioner.Partitions())
	}
	r := newRDD[K, S, M](op.name, op.keyed(), op.partitioner, b)
	r.outputs, r.exec = op.outputs, op.exec
	for i, m := range maps {
		if m == nil || m.Sealed() || m.Err() != nil {
			return nil, fmt.Errorf("operator %s epoch %d: %w: that of partition %d is not open", op.name, b.Epoch, ErrMaps, i)
		}
		r.records[i] = Record[K, S, M]{StateMap: m, Stats: Stats{Keys: int64(m.Len()), HeapBytes: m.HeapBytes()}}
		r.lines[i] = &lineage[K, S]{open: m} // without an index: the first batch builds one
		r.done[i].Store(true)
	}
	return r, r.Seal()
}
