package store

// Stats counts what maintenance has done since it was made.
type Stats struct {
	// Snapshots were written, SnapshotBytes long; Forced of them because a
	// chain of deltas had become too long, Repaired in the place of one that a
	// load had found bad or lost. Failed ones are tried again.
	Snapshots, Forced, Repaired, Failed int64
	SnapshotBytes                       int64
	// Deleted files and other names, and failures of deleting, which are tried
	// again.
	Deleted, DeleteFailed int64
	// ChainMax is the most deltas that a load of the newest version needs in
	// any partition.
	ChainMax uint64
	// Floor is the F of the newest commit, Oldest the oldest version that is
	// promised to load.
	Floor, Oldest uint64
	// Newest is the newest commit that was told.
	Newest uint64
	// Last is the version of the last good snapshot or base of each partition.
	Last map[Partition]uint64
	// Err is an error of what failed at its last try; nil if nothing did.
	Err error
}
