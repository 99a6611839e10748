package checkpoint

import (
	"context"
	"errors"

	"github.com/statemill/statemill/vfs"
)

// Root reads a root. It takes no lock and writes nothing. It keeps documents
// that it has read, as they never change. Its methods may be called from any
// goroutine; what they return is shared and must not be changed.
type Root struct {
	store vfs.Store
}

// OpenRoot returns a reader of a root; nothing is touched before the first call.
func OpenRoot(store vfs.Store) *Root { return &Root{store: store} }

// Store is what the root reads.
func (r *Root) Store() vfs.Store { return r.store }

// Newest gives the newest commit, nil if there is none. The first call lists
// the commits; later ones probe for the next. Errors: *CorruptError,
// *FormatError, *GapError, those of the store.
func (r *Root) Newest(ctx context.Context) (*Commit, error) { return nil, errSkeleton }

// Commit gives commits/n; fs.ErrNotExist if there is none.
func (r *Root) Commit(ctx context.Context, n uint64) (*Commit, error) { return nil, errSkeleton }

// Plan gives offsets/n; fs.ErrNotExist if there is none.
func (r *Root) Plan(ctx context.Context, n uint64) (*Plan, error) { return nil, errSkeleton }

// Metadata gives metadata/seq; fs.ErrNotExist if there is none.
func (r *Root) Metadata(ctx context.Context, seq uint64) (*Metadata, error) { return nil, errSkeleton }

// Owner gives the newest owner, nil if there is none.
func (r *Root) Owner(ctx context.Context) (*Owner, error) { return nil, errSkeleton }

// Commits lists the numbers of the commits that are believed, ascending.
func (r *Root) Commits(ctx context.Context) ([]uint64, error) { return nil, errSkeleton }

// OperatorAt gives an operator as version n has it, by its number.
func (r *Root) OperatorAt(ctx context.Context, number int, n uint64) (*Operator, error) {
	return nil, errSkeleton
}

// Read calls do with the newest commit. If a file vanishes under it (the error
// answers errors.Is for fs.ErrNotExist), because a run's clean-up went past it,
// it starts again from the then newest commit, at most 5 times; then the error
// is ErrVanished. do is called with nil if there is no commit.
func (r *Root) Read(ctx context.Context, do func(newest *Commit) error) error { return errSkeleton }

var errSkeleton = errors.New("not there yet")
