package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// Row is a row of a version.
type Row struct {
	// Key is the canonical encoding of the key.
	Key []byte
	// State is the encoded state; it is not there where HasState is false, for
	// entries that have a deadline alone.
	State    []byte
	HasState bool
	// Time is that of the last update, or a deadline, see statefile.
	Time int64
}

// ReadRows gives all rows of version n of a partition in the order of their
// keys' bytes. Chain hashes and checksums are compared before the first row is
// given; a bad snapshot is passed over and told to notice, which may be nil.
// It holds the whole partition in memory; rows belong to yield. yield's error
// ends it and is returned. Other errors: those of Files, statefile's, and
// fs.ErrNotExist for a file that is gone.
func ReadRows(ctx context.Context, r *Root, number, part int, n uint64, notice func(Notice), yield func(Row) error) error {
	_, rows, err := loadRows(ctx, r, number, part, n, notice)
	if err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		v := rows[k]
		if err := yield(Row{Key: []byte(k), State: v.state, HasState: v.state != nil, Time: v.time}); err != nil {
			return err
		}
	}
	return nil
}

// value is an entry without its key; state is nil if there is none.
type value struct {
	state []byte
	time  int64
}

// loadRows loads a version, from an older snapshot if the newest is bad.
func loadRows(ctx context.Context, r *Root, number, part int, n uint64, notice func(Notice)) (*Files, map[string]value, error) {
	var bad []string
	var buf rowBuffer
	for {
		f, err := r.Files(ctx, number, part, n, bad...)
		if err != nil {
			return nil, nil, err
		}
		rows := map[string]value{}
		if f.Start != nil {
			if err = buf.apply(ctx, r.store, f, f.Start, rows); err != nil && f.Start.Kind == statefile.Snapshot && Bad(err) &&
				!errors.Is(err, fs.ErrNotExist) && !sabotage.On("no-second-snapshot") { // one that has just gone is no bad one: a clean-up went past
				bad = append(bad, f.Start.Name)
				if notice != nil {
					notice(Notice{Kind: NoticeSnapshot, Operator: f.Operator.Name, Err: err,
						Text: fmt.Sprintf("snapshot %s is bad; an older one and the deltas are used", f.Start.Name)})
				}
				continue
			}
		}
		for i := 0; i < len(f.Deltas) && err == nil; i++ {
			err = buf.apply(ctx, r.store, f, &f.Deltas[i], rows)
		}
		if err != nil {
			return nil, nil, err
		}
		if int64(len(rows)) != f.Keys && !sabotage.On("keys-not-counted") {
			return nil, nil, &CorruptError{Path: CommitName(n), Number: n, Reason: fmt.Sprintf(
				"it counts %d keys of operator %q, partition %d, its files have %d", f.Keys, f.Operator.Name, part, len(rows))}
		}
		return f, rows, nil
	}
}

// Bad reports whether an error says that a state file itself is bad or gone, so
// that another one may do; of others (the store's, a context's) trying again is
// the way out.
func Bad(err error) bool {
	return errors.Is(err, statefile.ErrCorrupt) || errors.Is(err, statefile.ErrFormat) ||
		errors.Is(err, statefile.ErrMismatch) || errors.Is(err, fs.ErrNotExist)
}

// readAhead is the most bytes of one read of a state file.
const readAhead = 1 << 20

// OpenFile gives a reader of a state file from its beginning, which reads large
// pieces. It need not be closed.
func OpenFile(ctx context.Context, store vfs.Store, name string, size int64) io.Reader {
	return newBuffered(vfs.NewReader(ctx, store, vfs.Object{Name: name, Size: size}), size)
}

// rowBuffer is what reading a file needs; it is large, and reused.
type rowBuffer struct {
	frame statefile.Frame
	block statefile.Block
}

// apply reads a file into rows.
func (buf *rowBuffer) apply(ctx context.Context, store vfs.Store, f *Files, file *File, rows map[string]value) error {
	// The true size, so that bytes that follow the file's end are seen.
	o, err := store.Stat(ctx, file.Name)
	if err != nil {
		return fmt.Errorf("checkpoint: state file %s of operator %q, partition %d, version %d: %w",
			file.Name, f.Operator.Name, f.Partition, file.Version, err)
	}
	want := file.Want(f.Operator, f.Partition)
	want.KeyCodec = f.Operator.KeyCodec
	rd, err := statefile.NewReader(OpenFile(ctx, store, file.Name, o.Size), file.Name, want)
	if err != nil {
		return err
	}
	b := &buf.block
	for {
		err := rd.Next(&buf.frame)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = b.Decode(&buf.frame)
		}
		if err != nil {
			return err
		}
		for i := range b.Len() {
			k := string(b.Key(i))
			if b.Removed(i) {
				delete(rows, k)
				continue
			}
			v := value{time: b.Time(i)}
			if s, ok := b.State(i); ok {
				v.state = append(make([]byte, 0, len(s)), s...) // not nil
			}
			rows[k] = v
		}
	}
	if file.Kind == statefile.Snapshot && file.Chain.IsZero() && len(rows) > 0 {
		// A zero chain is not compared by the reader: no delta has ever been written.
		return &statefile.MismatchError{Path: file.Name, Operator: f.Operator.Name, Partition: f.Partition, Version: int64(file.Version),
			What: "number of entries", Got: strconv.Itoa(len(rows)), Want: "0"}
	}
	return nil
}
