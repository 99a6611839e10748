package store

import (
	"context"

	"github.com/statemill/statemill/statemap"
)

// LoadStats says how a version came to be in memory.
type LoadStats struct {
	// Files, Bytes and Keys are the files read, their length, and the keys of
	// the version.
	Files int
	Bytes int64
	Keys  int64
	// Head is the version of the snapshot or base that it began with; before
	// the first version of its line, if it began with nothing.
	Head uint64
	// Deltas is the number of deltas after it.
	Deltas int
	// Bad are the snapshots that could not be used, newest first.
	Bad []Bad
	// Repaired counts what Bad holds, and 1 for a snapshot that must have been
	// lost: the counter snapshot_repaired. If it is not 0 the partition is to
	// get a new snapshot.
	Repaired int

	id    Partition
	files []file
	born  uint64
}

// Progress says how far a load is. Bytes and Keys of a partition only grow.
type Progress struct {
	Operator  string
	Partition int
	// Files of FilesTotal are done, Bytes of BytesTotal. A bad snapshot makes
	// the totals grow.
	Files, FilesTotal int
	Bytes, BytesTotal int64
	// Keys is the number of keys so far.
	Keys int64
	// Done says that the partition is loaded.
	Done bool
}

// Load loads version n of a partition. open makes an empty, open map and is
// called again if a snapshot turns out to be bad half-way; maps that are given
// up are aborted. The map that is returned is open and holds exactly the
// committed version; together with an error it is nil. progress, which may be
// nil, is called from this goroutine, after each file and every few MiB.
//
// It uses the newest good snapshot or base at or below n and the deltas after
// it. Memory beyond the map is a few buffers. Errors: *LoadError, those of open
// and of reading commits.
func (o *Operator[K, S]) Load(ctx context.Context, part int, n uint64, open func() (*statemap.Map[K, S], error), progress func(Progress)) (*statemap.Map[K, S], LoadStats, error) {
	return nil, LoadStats{}, nil
}

// LoadAll loads version n of all partitions, at most workers at a time (at
// least one). progress is called from several goroutines, but not at once. If
// one fails, all maps are aborted and the error of the lowest partition is
// returned.
func (o *Operator[K, S]) LoadAll(ctx context.Context, n uint64, workers int, open func() (*statemap.Map[K, S], error), progress func(Progress)) ([]*statemap.Map[K, S], []LoadStats, error) {
	return nil, nil, nil
}
