package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

const (
	rootsFolder  = "roots"
	manifestsDir = "manifests/"
	dataFolder   = "data/"
)

// Files is a unit of files in a [vfs.Store]: a folder, or an object store that
// has no locks. [Lines] and [Records] are its sinks, [OpenFiles] reads it.
//
//	<name>/roots/<root>                   the roots that have written here
//	<name>/<root>/manifests/<seq>         the log, from 1 on, without holes
//	<name>/<root>/data/<output>/<epoch/1000>/<epoch>.<partition>.<term>.<try>
//
// Each root id has a folder of its own, so a new root or a fork starts anew
// beside what others wrote; Fence says so in a notice, and readers choose.
//
// The log has two kinds of entries, created exclusively, each naming the one
// before by its sum: a fence, when a run opens the unit, and an epoch, which
// names the data files with sizes and checksums and holds the memory. A run
// appends only right after what it has read, so a fence shuts out all that do
// not know it: their next number is taken (P7). A file that no entry names does
// not exist for readers, whatever it holds; an aborted attempt leaves such
// files, and nobody deletes them. A partition without rows has no file, an epoch
// without rows an entry all the same.
//
// Opening asks for some twenty to forty names, however long the log is, and lists
// nothing; an epoch costs its data files and one entry. Nothing is compacted or
// removed: data files that are not wanted any more may be deleted, manifests must
// stay.
type Files struct {
	name  string
	store vfs.Store
	hold  Hold

	fence *Fence // nil: not open
	last  place
	tries int // transactions so far, for unique names
	open  *filesTx
}

var (
	_ Unit      = (*Files)(nil)
	_ Validator = (*Files)(nil)
)

// NewFiles makes a unit of files. name is its name in the job and its folder in
// the store: letters, digits, '-', '_' and '.'. Nothing is touched before Fence.
// A job has one unit of a name; several outputs may share it.
func NewFiles(name string, store vfs.Store) *Files { return &Files{name: name, store: store} }

// Name is the unit's name.
func (f *Files) Name() string { return f.name }

// Validate implements Validator.
func (f *Files) Validate() error {
	var err error
	if f.store == nil {
		err = fmt.Errorf("sink %s: the store is nil", f.name)
	}
	return errors.Join(err, checkName("unit", f.name))
}

func (f *Files) path(name string) string { return f.name + "/" + f.fence.Root + "/" + name }

func seqName(seq uint64) string { return manifestsDir + strconv.FormatUint(seq, 10) }

// Fence reads the log to its end and appends a fence.
func (f *Files) Fence(ctx context.Context, fence Fence) error {
	if err := errors.Join(f.Validate(), checkName("root", fence.Root)); err != nil {
		return &lastingError{err}
	}
	if fence.Term == 0 || !utf8.ValidString(fence.Run) {
		return fmt.Errorf("sink %s: run %q of term %d: %w: a run has a name in text and a term of at least 1", f.name, fence.Run, fence.Term, ErrMisuse)
	}
	if err := f.hold.Take(f.name, fence); err != nil {
		return err
	}
	f.fence, f.open = nil, nil
	next := &Files{name: f.name, store: f.store, fence: &fence}
	if err := next.readEnd(ctx); err != nil {
		return err
	}
	early := next.last.mem
	for {
		// A greater term, or a copy of the root that has the same one.
		if err := next.owned(); err != nil {
			return err
		}
		e := &entry{Kind: kindFence, Memory: next.last.mem}
		err := next.append(ctx, e)
		if err == nil {
			f.fence, f.last = &fence, next.last
			if sabotage.On("sink-memory-before-fence") {
				f.last.mem = early
			}
			return nil
		}
		if !errors.Is(err, errTaken) {
			return fmt.Errorf("sink %s: fence: %w", f.name, err)
		}
	}
}

// owned fails if the log's last entry is of a run that this one must give way to.
func (f *Files) owned() error {
	if sabotage.On("sink-fence-unchecked") {
		return nil
	}
	if f.last.term > f.fence.Term || f.last.term == f.fence.Term && f.last.run != f.fence.Run {
		return &NotOwnerError{Unit: f.name, Term: f.fence.Term, Newer: f.last.term}
	}
	return nil
}

// readEnd finds the last entry of the log. It says all: terms never go back in
// the log, and a fence carries the memory over.
func (f *Files) readEnd(ctx context.Context) error {
	n, err := lastEntry(ctx, f.store, f.path(""))
	if err != nil {
		return fmt.Errorf("sink %s: %w", f.name, err)
	}
	if n == 0 {
		return f.fresh(ctx)
	}
	e, sum, err := readEntry(ctx, f.store, f.path(""), n)
	if err != nil {
		return fmt.Errorf("sink %s: %w", f.name, err)
	}
	if err := e.belongs(f.path(""), f.fence.Root, f.name); err != nil {
		return err
	}
	f.last = e.place(sum)
	return nil
}

// fresh makes the root known, and tells of others.
func (f *Files) fresh(ctx context.Context) error {
	others, err := FileRoots(ctx, f.store, f.name)
	if err != nil {
		return err
	}
	others = slices.DeleteFunc(others, func(root string) bool { return root == f.fence.Root })
	name := f.name + "/" + rootsFolder + "/" + f.fence.Root
	err = f.store.PutIfAbsent(ctx, name, func(w io.Writer) error {
		_, err := io.WriteString(w, f.fence.Root+"\n")
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("sink %s: %w", f.name, err)
	}
	if len(others) > 0 && f.fence.Notice != nil {
		f.fence.Notice(fmt.Sprintf("starts anew for root %s in %s; what was written for other roots stays beside it and is not continued: %s",
			f.fence.Root, f.path(""), strings.Join(others, ", ")))
	}
	return nil
}

var errTaken = errors.New("the number is taken")

// append puts an entry after the last one that was read. If the number is taken
// by the same bytes, an earlier call succeeded; else last is what was found
// there, and the error is errTaken.
func (f *Files) append(ctx context.Context, e *entry) error {
	e.Format, e.Seq, e.Prev = EntryFormat, f.last.seq+1, f.last.sum
	e.Root, e.Unit, e.Term, e.Run = f.fence.Root, f.name, f.fence.Term, f.fence.Run
	b, sum, err := e.encode()
	if err != nil {
		return err
	}
	if err := e.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrMisuse, err)
	}
	if sabotage.On("sink-manifest-replaced") {
		_ = f.store.Delete(ctx, f.path(seqName(e.Seq)))
	}
	err = f.store.PutIfAbsent(ctx, f.path(seqName(e.Seq)), func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
	if err == nil {
		f.last = e.place(sum)
		return nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	there, thereSum, err := readEntry(ctx, f.store, f.path(""), e.Seq)
	if err != nil {
		return err
	}
	if err := errors.Join(there.belongs(f.path(""), f.fence.Root, f.name), f.last.damage(f.path(""), there)); err != nil {
		return err
	}
	f.last = there.place(thereSum)
	if thereSum == sum {
		return nil
	}
	return errTaken
}

// Memory gives what Fence found, or this run's last commit.
func (f *Files) Memory(ctx context.Context) (Memory, bool, error) {
	switch {
	case f.fence == nil:
		return Memory{}, false, fmt.Errorf("sink %s: memory: %w: fence first", f.name, ErrMisuse)
	case f.last.mem == nil:
		return Memory{}, false, ctx.Err()
	}
	return *f.last.mem, true, ctx.Err()
}

// Begin begins the transaction of an epoch; it touches nothing.
func (f *Files) Begin(ctx context.Context, epoch uint64) (Tx, error) {
	switch {
	case f.fence == nil:
		return nil, fmt.Errorf("sink %s: begin: %w: fence first", f.name, ErrMisuse)
	case f.open != nil:
		return nil, fmt.Errorf("sink %s: begin epoch %d: %w: epoch %d is open", f.name, epoch, ErrMisuse, f.open.epoch)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	if !sabotage.On("sink-attempts-share-names") {
		f.tries++
	}
	f.open = &filesTx{unit: f, epoch: epoch, try: f.tries, folder: f.path(""), term: f.fence.Term}
	return f.open, nil
}

// Close ends the unit.
func (f *Files) Close() error {
	f.fence, f.open = nil, nil
	f.hold.Release()
	return nil
}
