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
// before it, a commit only after the plan of its own, and a state file only after
// the first plan. It costs a list of the plans, and one of the state of a root that
// has none.
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
		if len(plans) > 0 {
			return nil
		}
		return r.orphans(ctx)
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

// orphans refuses a root without commits and plans that has state.
func (r *Root) orphans(ctx context.Context) error {
	if sabotage.On("orphans-not-seen") {
		return nil
	}
	list, err := r.store.List(ctx, stateFolder)
	if err != nil {
		return fmt.Errorf("checkpoint: list %s: %w", stateFolder, err)
	}
	for _, o := range list {
		if _, ok := ParseStateName(o.Name); !ok {
			continue
		}
		// A run may have planned its first epoch since the plans were listed.
		plans, err := r.numbers(ctx, planFolder)
		if err != nil || len(plans) > 0 {
			return err
		}
		return &GapError{Plan: true, Missing: 1, State: o.Name}
	}
	return nil
}

// Lost is nil if nothing shows that commits or plans are gone which must have been
// there beside the newest commit, as Newest gives it; else a *GapError. A start
// refuses such a root; what Newest itself finds is not looked for again. Other
// errors: those of the store.
func (r *Root) Lost(ctx context.Context, newest *Commit) error { return r.lost(ctx, newest) }

// there probes for a document.
func (r *Root) there(ctx context.Context, name string) (bool, error) {
	_, err := r.store.Stat(ctx, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("checkpoint: probe %s: %w", name, err)
	}
	return err == nil, nil
}
