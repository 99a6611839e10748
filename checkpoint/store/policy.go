package store

import (
	"fmt"
	"time"
)

// Defaults of Policy and MaintainerConfig.
const (
	// DefaultEveryVersions is how many versions pass between two snapshots of a
	// partition.
	DefaultEveryVersions = 200
	// DefaultBySize is the least number of bytes of deltas for which BySize asks
	// for a snapshot.
	DefaultBySize = 4 << 20
	// DefaultRetain is the number of good snapshots that are kept of every
	// partition.
	DefaultRetain = 2
	// DefaultInterval is the time between two looks at what is to be done
	// without a commit, and the longest wait before a failed snapshot is tried
	// again.
	DefaultInterval = time.Minute
)

// Policy says when a snapshot of a partition is due: when any of its parts says
// so. The zero Policy is EveryVersions(200) or BySize(4 MiB), whichever comes
// first. Policies are values; With joins two of them.
type Policy struct {
	// Versions is the number of versions after which one is due, changed or
	// not; 0 means that versions alone ask for none.
	Versions uint64
	// Bytes is the least length of the deltas since the last snapshot for which
	// one is due, once they are longer than that snapshot; 0 means that size
	// alone asks for none.
	Bytes int64
	// At reports whether every partition gets a snapshot of exactly the version
	// whose batch time is t, the batch before having been at prev (unix
	// nanoseconds). Nil means never. It is called once per commit.
	At func(prev, t int64) bool
}

// EveryVersions makes a snapshot due n versions after the last one. It counts
// versions, not changes, so idle partitions get theirs too and clean-up can go
// on. n is at least 1.
func EveryVersions(n uint64) Policy { return Policy{Versions: n} }

// BySize makes a snapshot due when the deltas since the last one are longer
// than it, and than least bytes (at least 1).
func BySize(least int64) Policy { return Policy{Bytes: least} }

// AtCheckpointInterval makes a snapshot of every partition due at each batch
// time with a multiple of d after zero in (previous batch, this batch]. zero is
// in unix nanoseconds; d is at least 1 ns.
func AtCheckpointInterval(zero int64, d time.Duration) Policy {
	return Policy{At: func(prev, t int64) bool {
		return floorDiv(t-zero, int64(d)) > floorDiv(prev-zero, int64(d))
	}}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// With makes a snapshot due when p or q says so.
func (p Policy) With(q Policy) Policy {
	if q.Versions != 0 && (p.Versions == 0 || q.Versions < p.Versions) {
		p.Versions = q.Versions
	}
	if q.Bytes != 0 && (p.Bytes == 0 || q.Bytes < p.Bytes) {
		p.Bytes = q.Bytes
	}
	if a, b := p.At, q.At; a == nil {
		p.At = b
	} else if b != nil {
		p.At = func(prev, t int64) bool { return a(prev, t) || b(prev, t) }
	}
	return p
}

// IsZero reports whether p is the zero Policy, which stands for the default.
func (p Policy) IsZero() bool { return p.Versions == 0 && p.Bytes == 0 && p.At == nil }

// filled puts the default in the place of a zero policy.
func (p Policy) filled() Policy {
	if p.IsZero() {
		return EveryVersions(DefaultEveryVersions).With(BySize(DefaultBySize))
	}
	return p
}

// check refuses what no policy function makes.
func (p Policy) check() error {
	if p.Bytes < 0 {
		return fmt.Errorf("snapshot policy: %d bytes: must not be negative", p.Bytes)
	}
	return nil
}

// interval is the number of versions that half the longest chain has: a chain
// of twice as many deltas forces a snapshot.
func (p Policy) interval() uint64 {
	if p.Versions == 0 {
		return DefaultEveryVersions
	}
	return p.Versions
}
