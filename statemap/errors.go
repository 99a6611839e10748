package statemap

import (
	"errors"
	"fmt"
)

// Errors of this package. All are compared with errors.Is; those with a number
// in their text are wrapped by a message that names it.
var (
	// ErrSealed is returned by every write to a version that was sealed, by
	// Seal or by having been copied. Copy the newest version and write there.
	ErrSealed = errors.New("statemap: the version is sealed; write to a copy of it")

	// ErrReleased is returned by every use of a handle after Release or Abort.
	ErrReleased = errors.New("statemap: the handle was released")

	// ErrEmptyMap is returned by Put on the shared empty map.
	ErrEmptyMap = errors.New("statemap: put must not be called on an empty map; make one with New")

	// ErrNotNewest is returned by Abort of a version that has a live successor.
	ErrNotNewest = errors.New("statemap: only the newest version can be aborted; abort or release its successors first")

	// ErrDeltaGone is returned by Delta when the list of what the version
	// changed was dropped because a successor was begun.
	ErrDeltaGone = errors.New("statemap: the changes of the version are no longer kept; read them before the next Copy")

	// ErrThreshold is returned by New for a delta chain threshold below 1.
	ErrThreshold = errors.New("statemap: invalid delta chain threshold; it must be at least 1")

	// ErrCapacity is returned by New for an initial capacity below 1.
	ErrCapacity = errors.New("statemap: invalid initial capacity; it must be at least 1")

	// ErrBlock is returned by Resolve for a block that is too long or whose
	// hashes and keys differ in number, and by Apply for a block that was not
	// resolved on this map or is older than another write to it.
	ErrBlock = errors.New("statemap: bad block")

	// ErrNaN is returned for a key that is not equal to itself: it could be
	// stored but never be found again.
	ErrNaN = errors.New("statemap: a key that holds NaN cannot be stored")

	// ErrFull is returned when a table would need more than 2^32-2 slots.
	ErrFull = errors.New("statemap: a map holds at most 4294967294 keys; use more partitions")

	// ErrDumpCount is returned by Import when the dump's count differs from
	// the number of distinct keys in its base.
	ErrDumpCount = errors.New("statemap: the dump is damaged")
)

func blockErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBlock, fmt.Sprintf(format, args...))
}
