package sink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"github.com/statemill/statemill/internal/framing"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// FileReader reads what a unit of [Files] has committed: epochs in order, each
// whole. It takes no lock and writes nothing, and a run may go on writing: Next
// gives what has been committed since. Only what the log names is read, and
// every byte of it is checked. One goroutine uses a FileReader at a time.
type FileReader struct {
	store              vfs.Store
	name, root, folder string
	known              uint64 // entries that were there at the start
	last               place
}

// FileEpoch is one committed epoch.
type FileEpoch struct {
	// Memory has the number of the epoch, the term of its writer and its sums.
	Memory Memory
	// Files are its files, by output and partition. Partitions without rows have
	// none.
	Files []File
}

// FileRow is one committed row.
type FileRow struct {
	// Epoch, Output and Partition say where it belongs.
	Epoch     uint64
	Output    string
	Partition int
	// Data is the row as it was encoded; it belongs to the caller.
	Data []byte
}

// OpenFiles opens the unit of files called name for reading, before its first
// epoch. root is the id of the checkpoint root of which to read the output; ""
// means the only one there is, and is an error that lists them if there are
// several. It is fs.ErrNotExist if there is no output of that root yet.
func OpenFiles(ctx context.Context, store vfs.Store, name, root string) (*FileReader, error) {
	roots, err := FileRoots(ctx, store, name)
	if err != nil {
		return nil, err
	}
	switch {
	case root == "" && len(roots) > 1:
		return nil, fmt.Errorf("sink %s: %d roots have written here, name one: %s", name, len(roots), strings.Join(roots, ", "))
	case root == "" && len(roots) == 1:
		root = roots[0]
	case root == "":
		return nil, fmt.Errorf("sink %s: no run has written here: %w", name, fs.ErrNotExist)
	}
	r := &FileReader{store: store, name: name, root: root, folder: name + "/" + root + "/"}
	if r.known, err = lastEntry(ctx, store, r.folder); err != nil {
		return nil, fmt.Errorf("sink %s: %w", name, err)
	}
	return r, nil
}

// Root is the id of the root whose output is read.
func (r *FileReader) Root() string { return r.root }

// Next gives the next committed epoch, or false if there is none yet.
func (r *FileReader) Next(ctx context.Context) (FileEpoch, bool, error) {
	for {
		e, sum, err := readEntry(ctx, r.store, r.folder, r.last.seq+1)
		switch {
		case absent(err) && r.last.seq < r.known:
			return FileEpoch{}, false, &DamagedError{Path: r.folder + seqName(r.last.seq+1), Reason: "it is gone"}
		case absent(err):
			return FileEpoch{}, false, nil
		case err == nil:
			err = errors.Join(e.belongs(r.folder, r.root, r.name), r.last.damage(r.folder, e))
		}
		if err != nil {
			return FileEpoch{}, false, fmt.Errorf("sink %s: %w", r.name, err)
		}
		r.last = e.place(sum)
		if e.Kind == kindEpoch {
			return FileEpoch{Memory: *e.Memory, Files: e.Files}, true, nil
		}
	}
}

// After sets the reader so that Next gives the first epoch above the given one,
// by a search that reads few entries.
func (r *FileReader) After(ctx context.Context, epoch uint64) error {
	var at place // the last entry that is known to hold no later epoch
	for low, high := uint64(0), r.known; low < high; {
		mid := low + (high-low+1)/2
		e, sum, err := readEntry(ctx, r.store, r.folder, mid)
		if err == nil {
			err = e.belongs(r.folder, r.root, r.name)
		}
		if err != nil {
			return fmt.Errorf("sink %s: %w", r.name, err)
		}
		if p := e.place(sum); p.epoch() <= epoch {
			low, at = mid, p
		} else {
			high = mid - 1
		}
	}
	r.last = at
	return nil
}

// Epochs gives all committed epochs from where the reader is, until there is
// none yet. An error is the last that comes.
func (r *FileReader) Epochs(ctx context.Context) iter.Seq2[FileEpoch, error] {
	return func(yield func(FileEpoch, error) bool) {
		for {
			e, ok, err := r.Next(ctx)
			if err == nil && !ok || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Rows gives all committed rows from where the reader is: by epoch, output and
// partition, in order. An error is the last that comes.
func (r *FileReader) Rows(ctx context.Context) iter.Seq2[FileRow, error] {
	return func(yield func(FileRow, error) bool) {
		for e, err := range r.Epochs(ctx) {
			if err != nil {
				yield(FileRow{}, err)
				return
			}
			for _, f := range e.Files {
				stop := errors.New("stop")
				err := r.FileRows(ctx, f, func(row []byte) error {
					if !yield(FileRow{Epoch: e.Memory.Epoch, Output: f.Output, Partition: f.Partition, Data: row}, nil) {
						return stop
					}
					return nil
				})
				if err != nil {
					if !errors.Is(err, stop) {
						yield(FileRow{}, err)
					}
					return
				}
			}
		}
	}
}

// Read gives the bytes of a file, all of them checked before the first is given.
func (r *FileReader) Read(ctx context.Context, f File) ([]byte, error) {
	name := r.folder + f.Name
	b, err := r.store.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("sink %s: %w", r.name, err)
	}
	if int64(len(b)) != f.Size {
		return nil, &DamagedError{Path: name, Reason: fmt.Sprintf("it has %d bytes, its manifest says %d", len(b), f.Size)}
	}
	if SumOf(b) != f.Checksum && !sabotage.On("sink-data-unchecked") {
		return nil, &DamagedError{Path: name, Reason: "its checksum is not that of its manifest"}
	}
	return b, nil
}

// FileRows calls yield for each row of a file, in order, after the file was
// checked as a whole. The bytes belong to the caller. yield's error ends it and
// is returned.
func (r *FileReader) FileRows(ctx context.Context, f File, yield func(row []byte) error) error {
	b, err := r.Read(ctx, f)
	if err != nil {
		return err
	}
	n, err := framing.Each(f.Framing == framingLines, b, func(_ int64, row []byte) error { return yield(row) })
	if errors.Is(err, framing.ErrFraming) || err == nil && n != f.Rows {
		return &DamagedError{Path: r.folder + f.Name, Reason: fmt.Sprintf("%d rows were read, its manifest says %d", n, f.Rows)}
	}
	return err
}
