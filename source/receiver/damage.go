package receiver

import (
	"fmt"
	"io"

	"github.com/statemill/statemill/internal/sabotage"
)

// DamagedError is a log whose files do not fit together: one is missing, or was
// changed in a place that had been acknowledged.
type DamagedError struct {
	// Path is the file or directory.
	Path string
	// Offset is that of the first record that cannot be read, -1 if that is not known.
	Offset int64
	// Reason is what is wrong with it.
	Reason string
}

// Error names the file, the fault and the next step.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("receiver log %s: %s: bring the file back, or start with a new directory and a new checkpoint", e.Path, e.Reason)
}

// Permanent says that trying again is of no use.
func (e *DamagedError) Permanent() bool { return true }

// changed is the error of a block that is not any more what was acknowledged.
func changed(path string, at, offset int64) error {
	return &DamagedError{Path: path, Offset: offset, Reason: fmt.Sprintf("the block at byte %d, with offset %d, has changed", at, offset)}
}

// searchStep is how much of a file is searched at once.
const searchStep = 1 << 20

// follows says whether anything behind the block at off, which begins with an offset
// and is not whole, proves that it had been synced; end is its end, 0 if not known.
// See the format.
func (l layout) follows(r io.ReaderAt, off, end, offset, size int64) (bool, error) {
	if sabotage.On("receiver-all-torn") {
		return false, nil
	}
	if end > 0 && size > end {
		return true, nil
	}
	var buf []byte
	for from := off + 1; from < size; from += searchStep {
		b := make([]byte, min(searchStep+blockHead-1, size-from))
		if err := readFull(r, b, from); err != nil {
			return false, err
		}
		for i := 0; i < min(len(b), searchStep); i++ {
			at := from + int64(i)
			if l.version > 1 {
				if l.isHead(b[i:], at) {
					return true, nil
				}
				continue
			}
			if len(b)-i < blockHead1 || !mayFollow1(b[i:], off, at, offset) {
				continue
			}
			_, more, ok, err := readBlock1(r, at, size, buf)
			if ok || err != nil {
				return ok, err
			}
			buf = more
		}
	}
	return false, nil
}
