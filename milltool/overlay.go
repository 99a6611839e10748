package milltool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// errReplayed ends a job once its epoch was computed.
var errReplayed = errors.New("the epoch was computed again; nothing is committed")

// doneError is errReplayed as a store says it: trying again is of no use.
type doneError struct{ error }

// Permanent ends retries.
func (doneError) Permanent() bool { return true }

// Unwrap gives the error.
func (e doneError) Unwrap() error { return e.error }

// overlay is a root as it was before an epoch was committed: its plan waits to be
// redone, and nothing of later epochs is there. What a job writes stays in
// memory, and the commit of the epoch ends the job. The root underneath is only
// read.
type overlay struct {
	base  vfs.Store
	own   *vfs.Objects
	epoch uint64
	// before is the commit of the version before, as it is shown: without the
	// memories of sinks, which are not asked, and with the floor of now.
	before []byte
	// commit is the epoch's commit as the job would have written it.
	commit *checkpoint.Commit
	// show lets readers see commit, after the job.
	show bool
}

var _ vfs.Store = (*overlay)(nil)

// newOverlay makes the overlay of an epoch; before is nil for the first.
func newOverlay(base vfs.Store, epoch, floor uint64, before *checkpoint.Commit) (*overlay, error) {
	o := &overlay{base: base, own: vfs.NewObjects(), epoch: epoch}
	if before == nil {
		return o, nil
	}
	shown := *before
	shown.Sinks, shown.Floor = nil, max(shown.Floor, floor)
	var err error
	o.before, err = checkpoint.EncodeDocument(&shown)
	return o, err
}

// visible tells which objects of the root underneath are shown.
func (o *overlay) visible(name string) bool {
	if s, ok := checkpoint.ParseStateName(name); ok {
		return s.Version < o.epoch
	}
	folder, _, _ := strings.Cut(name, "/")
	n, ok := documentNumber(name)
	switch {
	case !ok:
		return false // the lock, and what is none of a root
	case folder == "commits":
		return n < o.epoch
	case folder == "offsets":
		return n <= o.epoch
	}
	return true
}

// in gives the store that has an object.
func (o *overlay) in(ctx context.Context, name string) vfs.Store {
	if _, err := o.own.Stat(ctx, name); err != nil && o.visible(name) {
		return o.base
	}
	return o.own
}

// content gives the bytes of the objects that are in neither store.
func (o *overlay) content(name string) ([]byte, bool) {
	if o.before != nil && name == checkpoint.CommitName(o.epoch-1) {
		return o.before, true
	}
	if o.show && name == checkpoint.CommitName(o.epoch) {
		b, err := checkpoint.EncodeDocument(o.commit)
		return b, err == nil
	}
	return nil, false
}

// PutIfAbsent keeps an object in memory; the epoch's commit ends the job.
func (o *overlay) PutIfAbsent(ctx context.Context, name string, write func(io.Writer) error) error {
	if name != checkpoint.CommitName(o.epoch) {
		if o.in(ctx, name) == o.base {
			if _, err := o.base.Stat(ctx, name); err == nil {
				return &fs.PathError{Op: "put", Path: name, Err: fs.ErrExist}
			}
		}
		if sabotage.On("replay-writes") {
			return o.base.PutIfAbsent(ctx, name, write)
		}
		return o.own.PutIfAbsent(ctx, name, write)
	}
	var b strings.Builder
	if err := write(&b); err != nil {
		return err
	}
	doc, err := checkpoint.DecodeDocument(name, []byte(b.String()))
	if err != nil {
		return doneError{err}
	}
	o.commit = doc.(*checkpoint.Commit)
	return doneError{errReplayed}
}

// Get returns all bytes of an object.
func (o *overlay) Get(ctx context.Context, name string) ([]byte, error) {
	if b, ok := o.content(name); ok {
		return slices.Clone(b), nil
	}
	return o.in(ctx, name).Get(ctx, name)
}

// ReadAt reads a range of an object.
func (o *overlay) ReadAt(ctx context.Context, name string, p []byte, off int64) (int, error) {
	if b, ok := o.content(name); ok {
		return strings.NewReader(string(b)).ReadAt(p, off)
	}
	return o.in(ctx, name).ReadAt(ctx, name, p, off)
}

// Stat describes an object.
func (o *overlay) Stat(ctx context.Context, name string) (vfs.Object, error) {
	if b, ok := o.content(name); ok {
		return vfs.Object{Name: name, Size: int64(len(b))}, nil
	}
	return o.in(ctx, name).Stat(ctx, name)
}

// List describes the objects below a folder.
func (o *overlay) List(ctx context.Context, folder string) ([]vfs.Object, error) {
	list, err := o.own.List(ctx, folder)
	if err != nil {
		return nil, err
	}
	under, err := o.base.List(ctx, folder)
	if err != nil {
		return nil, err
	}
	for _, b := range under {
		if o.visible(b.Name) {
			list = append(list, b)
		}
	}
	if name := checkpoint.CommitName(o.epoch); o.show && strings.HasPrefix(name, folder) {
		list = append(list, vfs.Object{Name: name})
	}
	slices.SortFunc(list, func(a, b vfs.Object) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Leftovers returns none.
func (o *overlay) Leftovers(context.Context, string) ([]vfs.Leftover, error) { return nil, nil }

// Delete deletes what the job wrote itself, and nothing else.
func (o *overlay) Delete(ctx context.Context, name string) error { return o.own.Delete(ctx, name) }

// Lock locks nothing: the overlay is one job's own.
func (o *overlay) Lock(_ context.Context, name, _ string) (io.Closer, error) {
	return nil, fmt.Errorf("lock %s of a replay: %w", name, errors.ErrUnsupported)
}

// replayed reads the root with the epoch as the job computed it.
func (o *overlay) replayed() *checkpoint.Root {
	o.show = true
	return checkpoint.OpenRoot(o)
}
