package store

import "fmt"

// NoticeKind classifies notices.
type NoticeKind string

// The notices.
const (
	NoticeSnapshot         NoticeKind = "snapshot"          // a snapshot was written
	NoticeSnapshotForced   NoticeKind = "snapshot-forced"   // one was written before a commit, as a chain had become too long
	NoticeSnapshotRepaired NoticeKind = "snapshot-repaired" // one was written because a load had found one bad or lost
	NoticeSnapshotFailed   NoticeKind = "snapshot-failed"   // one failed and is tried again
	NoticeSnapshotBad      NoticeKind = "snapshot-bad"      // a load met a bad or lost one
	NoticeDeleteFailed     NoticeKind = "delete-failed"     // a file could not be deleted; that is tried again
	NoticeSweepFailed      NoticeKind = "sweep-failed"      // the listing at the start failed; it is tried again
)

// Notice tells what maintenance has met.
type Notice struct {
	Kind NoticeKind
	// Partition and Version say of what, where the kind has them.
	Partition Partition
	Version   uint64
	// Name is the file, Size its length in bytes.
	Name string
	Size int64
	// Err is what failed, else nil.
	Err error
}

// String says it in words.
func (n Notice) String() string {
	of := fmt.Sprintf("operator %d partition %d version %d", n.Partition.Operator, n.Partition.Partition, n.Version)
	switch n.Kind {
	case NoticeSnapshot:
		return fmt.Sprintf("snapshot of %s: %s, %d bytes", of, n.Name, n.Size)
	case NoticeSnapshotForced:
		return fmt.Sprintf("snapshot of %s before the commit, as its chain had become too long: %s, %d bytes", of, n.Name, n.Size)
	case NoticeSnapshotFailed:
		return fmt.Sprintf("snapshot of %s failed and is tried again: %v", of, n.Err)
	case NoticeSnapshotRepaired:
		return fmt.Sprintf("snapshot of %s in the place of a bad or lost one: %s, %d bytes", of, n.Name, n.Size)
	case NoticeSnapshotBad:
		return fmt.Sprintf("snapshot of %s cannot be used: %s: %v; a later version gets a new one", of, n.Name, n.Err)
	case NoticeDeleteFailed:
		return fmt.Sprintf("deleting %s failed and is tried again: %v", n.Name, n.Err)
	default:
		return fmt.Sprintf("looking for leftovers failed and is tried again: %v", n.Err)
	}
}

// subject names what a failure is about.
func (n Notice) subject() string {
	switch n.Kind {
	case NoticeDeleteFailed:
		return "delete " + n.Name
	case NoticeSweepFailed:
		return "sweep"
	}
	return fmt.Sprintf("snapshot %d %d %d", n.Partition.Operator, n.Partition.Layout, n.Partition.Partition)
}
