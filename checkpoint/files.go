package checkpoint

import (
	"context"

	"github.com/statemill/statemill/checkpoint/statefile"
)

// File is a state file that a version consists of.
type File struct {
	// Name is the file's name in the store, Term that of its writer.
	Name string
	Term uint64
	// Version is the version that it makes, Time its batch time.
	Version uint64
	Time    int64
	// Kind is Delta for bases too.
	Kind statefile.Kind
	Base bool
	// Chain is the committed chain hash of the version. Prev is that of the
	// version before it, zero for bases.
	Chain, Prev statefile.Sum
	// Checksum and Size are committed for deltas and bases. A snapshot has a
	// zero Checksum, and the Size that was listed.
	Checksum statefile.Sum
	Size     int64
	// Keys is the committed number of keys of the version.
	Keys int64
}

// Want is what a reader of the file must ask for.
func (f *File) Want(op *Operator, part int) *statefile.Want {
	return &statefile.Want{Kind: f.Kind, Operator: op.Name, Partition: part, Version: int64(f.Version),
		Deadlines: op.Deadlines, Chain: f.Chain, Checksum: f.Checksum}
}

// Files is what version Version of one partition consists of: Start, then
// Deltas in their order.
type Files struct {
	// Operator is as the metadata of the version has it.
	Operator *Operator
	// Partition and Version are those that were asked for, Time and Chain those
	// of the version, Keys its number of keys.
	Partition int
	Version   uint64
	Time      int64
	Chain     statefile.Sum
	Keys      int64
	// Start is a snapshot or a base; nil if the version begins from nothing.
	Start *File
	// Deltas follow it, ascending.
	Deltas []File
}

// Files chooses the files of version n of a partition of an operator: the
// newest snapshot or base at or below n, and the deltas after it that the
// commits name. Snapshots whose names are among bad are passed over: so a load
// that finds one bad asks again. It lists the partition's folder once per call.
// Errors: those of Commit and Metadata; *NoStartError if a floor, or bad, has
// taken everything that a version could start from.
func (r *Root) Files(ctx context.Context, number, part int, n uint64, bad ...string) (*Files, error) {
	return nil, errSkeleton
}

// Row is a row of a version: canonical key bytes, encoded state, time. They are
// valid until yield returns.
type Row struct {
	Key, State []byte
	// HasState is false for entries that have a deadline alone.
	HasState bool
	// Time is that of the last update, or a deadline, see statefile.
	Time int64
}

// ReadRows gives all rows of version n of a partition in the order of their
// keys' bytes. Chain hashes and checksums are compared before the first row is
// given; a bad snapshot is passed over and told to notice (which may be nil).
// It holds the whole partition in memory. yield's error ends it and is returned.
func ReadRows(ctx context.Context, r *Root, number, part int, n uint64, notice func(Notice), yield func(Row) error) error {
	return errSkeleton
}
