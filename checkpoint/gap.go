package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/statemill/statemill/internal/sabotage"
)

// lost refuses a root of which commits or plans are gone that must have been there:
// without them a start would take an older version, or none, for the newest, and
// count anew what is counted. A plan is made only after the commit of the epoch
// before it, and a commit only after the plan of its own. It costs a list of the
// plans.
//
// Another run may be ahead of c meanwhile; then nothing is lost, and what c says is
// judged once more under the lock.
func (r *Root) lost(ctx context.Context, c *Commit) error {
	if sabotage.On("lost-not-seen") {
		return nil
	}
	plans, err := r.numbers(ctx, planFolder)
	if err != nil {
		return err
	}
	var newest, floor uint64
	if c != nil {
		newest, floor = c.Epoch, c.Floor
	}
	if n := len(plans); n > 0 && plans[n-1] > newest+1 {
		last := plans[n-1]
		there, err := r.there(ctx, CommitName(last-1))
		if err != nil || there {
			return err
		}
		return &GapError{Missing: newest + 1, Floor: floor, Newest: newest, Planned: last}
	}
	if c == nil {
		return nil
	}
	there, err := r.there(ctx, PlanName(newest))
	if err != nil || there {
		return err
	}
	if there, err = r.there(ctx, CommitName(newest+1)); err != nil || there {
		return err // the clean-up of a run that is ahead has taken it
	}
	return &GapError{Plan: true, Missing: newest, Floor: floor, Newest: newest}
}

// there probes for a document.
func (r *Root) there(ctx context.Context, name string) (bool, error) {
	_, err := r.store.Stat(ctx, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("checkpoint: probe %s: %w", name, err)
	}
	return err == nil, nil
}
