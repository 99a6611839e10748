package checkpoint

import (
	"context"
	"errors"
	"io/fs"
)

// LastPlan gives the newest plan of a batch, committed or not; nil if there is none.
// Errors: *CorruptError, *FormatError, *GapError, ErrVanished, those of the store.
func (r *Root) LastPlan(ctx context.Context) (plan *Plan, err error) {
	err = r.Read(ctx, func(c *Commit) error {
		next := uint64(1)
		if c != nil {
			next = c.Epoch + 1
		}
		plan, err = r.Plan(ctx, next)
		if err == nil && plan.Kind == KindBatch {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		plan, err = r.lastBatch(ctx, c)
		return err
	})
	return plan, err
}

// lastBatch gives the plan of the last batch that is committed, nil if there is none.
func (r *Root) lastBatch(ctx context.Context, c *Commit) (*Plan, error) {
	for c != nil && c.Kind == KindChange && c.Epoch > 1 {
		// The floor does not rise in a change, so the last batch is kept.
		var err error
		if c, err = r.Commit(ctx, c.Epoch-1); err != nil {
			return nil, err
		}
	}
	if c == nil {
		return nil, nil
	}
	return r.Plan(ctx, c.Epoch)
}
