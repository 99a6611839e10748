package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/statemill/statemill/internal/sabotage"
)

// Fate is what became of a commit that failed.
type Fate int

// The fates of a commit.
const (
	// NotCommitted: this session has not made commits/N, and no call of its is under
	// way that could still make it.
	NotCommitted Fate = iota
	// Committed: it has made it, it is durable, and it counts for whoever goes on with
	// the root.
	Committed
	// CommitUnknown: it cannot be told now. The store did not say how the creation
	// ended; or runs that came later have gone so far that the file, if it is there, is
	// not read any more. Whoever goes on with the root finds out.
	CommitUnknown
)

// CommitFate tells, after Commit has failed and before Close, what became of
// commits/N. It asks the store; what is not there it does not make.
func (s *Session) CommitFate(ctx context.Context) Fate {
	c := s.trying
	if c == nil || sabotage.On("commit-fate-guessed") {
		return NotCommitted
	}
	want, err := encode(c)
	if err != nil {
		return NotCommitted
	}
	name := CommitName(c.Epoch)
	there, err := s.cfg.Store.Get(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Where there are locks, a creation has ended when its call has; the request to
		// an object store may be on its way yet. And a newer run may have deleted it.
		if s.lock != nil && s.owned(ctx) == nil {
			return NotCommitted
		}
		return CommitUnknown
	case err != nil:
		return CommitUnknown
	case !bytes.Equal(there, want):
		return NotCommitted // another run's stands
	}
	if s.written != c {
		// The creation gave no answer: the name may be there and not be durable. To be
		// told that it is taken makes it so.
		err := s.cfg.Store.PutIfAbsent(ctx, name, func(w io.Writer) error {
			_, err := w.Write(want)
			return err
		})
		if !errors.Is(err, fs.ErrExist) {
			return CommitUnknown
		}
	}
	// Who the owner is does not matter any more: a newer run builds on what an older one
	// has committed. But the name may have been free because a newer run had committed
	// the epoch long ago and cleaned up (P5).
	newest, err := OpenRoot(s.cfg.Store).Newest(ctx)
	if err != nil || newest == nil || newest.Floor > c.Epoch {
		return CommitUnknown
	}
	return Committed
}
