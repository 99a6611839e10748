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

// countEntries lists the log in folder and gives the number of its entries. What
// has no number for a name is not part of it.
func countEntries(ctx context.Context, store vfs.Store, folder string) (n uint64, err error) {
	list, err := store.List(ctx, folder+manifestsDir)
	if err != nil {
		return 0, fmt.Errorf("list %s: %w", folder+manifestsDir, err)
	}
	count := uint64(0)
	for _, o := range list {
		name := strings.TrimPrefix(o.Name, folder+manifestsDir)
		seq, err := strconv.ParseUint(name, 10, 64)
		if err == nil && seq > 0 && u(seq) == name {
			count++
			n = max(n, seq)
		}
	}
	if count != n {
		return 0, &DamagedError{Path: folder + manifestsDir, Reason: fmt.Sprintf("it has entry %d, but only %d entries", n, count)}
	}
	return n, nil
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
