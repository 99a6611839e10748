package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/statemill/statemill/internal/sabotage"
)

// ReplacedError tells that the root was deleted, or another one put in its place,
// under the run. It is an [ErrNotOwner]: the run must end and writes nothing more.
type ReplacedError struct {
	// What is the run's own owner file, Run the run whose it is now, empty if there
	// is none.
	What, Run string
}

// Error says what has become of the file.
func (e *ReplacedError) Error() string {
	now := "is gone"
	if e.Run != "" {
		now = "is of run " + e.Run
	}
	return fmt.Sprintf("%s, which this run has made, %s: the checkpoint was deleted, moved away, or another one put in its place, while the program ran: this run must end; put the checkpoint back to go on with it", e.What, now)
}

// Is makes every ReplacedError an [ErrNotOwner].
func (e *ReplacedError) Is(target error) bool { return target == ErrNotOwner }

// unreplaced fails with *ReplacedError if the run's own owner file is not there any
// more. The owner check (P2) asks for greater terms only: a root that was made anew
// under the run begins at term 1 again, and the lock of the old one went with it.
func (s *Session) unreplaced(ctx context.Context) error {
	if sabotage.On("root-replaced-unseen") {
		return nil
	}
	name := OwnerName(s.Term())
	return s.retry(ctx, "read "+name, func() error {
		b, err := s.cfg.Store.Get(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			return &ReplacedError{What: name}
		}
		if err != nil {
			return err
		}
		o := new(Owner)
		if decode(b, name, s.Term(), o) == nil && o.Run != s.cfg.Run {
			return &ReplacedError{What: name, Run: o.Run}
		}
		return nil // a damaged one is for `statemill verify`
	})
}
