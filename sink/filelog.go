package sink

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/statemill/statemill/vfs"
	"github.com/zeebo/xxh3"
)

// lastEntry gives the number of the last entry of the log in folder, 0 if it is
// empty. As the log has no holes, it is found with a few questions, however long
// the log is; only an empty one is listed, lest its first entries were deleted.
func lastEntry(ctx context.Context, store vfs.Store, folder string) (uint64, error) {
	there := func(seq uint64) (bool, error) {
		_, err := store.Stat(ctx, folder+seqName(seq))
		if absent(err) {
			return false, nil
		}
		return err == nil, err
	}
	for low := uint64(0); ; {
		// low is there (or 0), high is not.
		high := low + 1
		for step := uint64(1); ; step *= 2 {
			ok, err := there(high)
			if err != nil {
				return 0, err
			}
			if !ok {
				break
			}
			low, high = high, high+step
		}
		for high-low > 1 {
			mid := low + (high-low)/2
			ok, err := there(mid)
			switch {
			case err != nil:
				return 0, err
			case ok:
				low = mid
			default:
				high = mid
			}
		}
		beyond, err := entryBeyond(ctx, store, folder, low, there)
		if err != nil || beyond == 0 {
			return low, err
		}
		// It came while this one was looking, and then so did the one before it.
		if ok, err := there(low + 1); err != nil || !ok {
			if err == nil {
				err = &DamagedError{Path: folder + seqName(low+1), Reason: fmt.Sprintf("it is missing, and entry %d is there", beyond)}
			}
			return 0, err
		}
		low++
	}
}

// entryBeyond looks for an entry after a last one, where none can be.
func entryBeyond(ctx context.Context, store vfs.Store, folder string, last uint64, there func(uint64) (bool, error)) (uint64, error) {
	if last > 0 {
		if ok, err := there(last + 2); err != nil || !ok {
			return 0, err
		}
		return last + 2, nil
	}
	list, err := store.List(ctx, folder+manifestsDir)
	if err != nil {
		return 0, fmt.Errorf("list %s: %w", folder+manifestsDir, err)
	}
	for _, o := range list { // what has no number for a name is not part of the log
		name := strings.TrimPrefix(o.Name, folder+manifestsDir)
		if seq, err := strconv.ParseUint(name, 10, 64); err == nil && seq > 0 && u(seq) == name {
			return seq, nil
		}
	}
	return 0, nil
}

// readEntry reads an entry of the log in folder.
func readEntry(ctx context.Context, store vfs.Store, folder string, seq uint64) (*entry, Sum, error) {
	name := folder + seqName(seq)
	b, err := store.Get(ctx, name)
	if err != nil {
		return nil, Sum{}, err
	}
	e, sum, err := decodeEntry(name, b)
	if err == nil && e.Seq != seq {
		err = &DamagedError{Path: name, Reason: fmt.Sprintf("it says that it is number %d", e.Seq)}
	}
	return e, sum, err
}

// FileRoots lists the ids of the roots that have written to the unit of files
// with this name, sorted.
func FileRoots(ctx context.Context, store vfs.Store, name string) ([]string, error) {
	folder := name + "/" + rootsFolder + "/"
	list, err := store.List(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("sink %s: list %s: %w", name, folder, err)
	}
	var roots []string
	for _, o := range list {
		if root := strings.TrimPrefix(o.Name, folder); checkName("root", root) == nil {
			roots = append(roots, root)
		}
	}
	return roots, nil
}

// summer writes to w, in large pieces, and adds up what passes.
type summer struct {
	*bufio.Writer
	h    *xxh3.Hasher
	size int64
}

func newSummer(w io.Writer) *summer {
	s := &summer{h: xxh3.New()}
	s.Writer = bufio.NewWriterSize(writerFunc(func(p []byte) (int, error) {
		_, _ = s.h.Write(p)
		s.size += int64(len(p))
		return w.Write(p)
	}), 64<<10)
	return s
}

func (s *summer) end() (size int64, sum Sum, err error) {
	err = s.Flush()
	return s.size, s.h.Sum128().Bytes(), err
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// absent says that an object is not there.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
