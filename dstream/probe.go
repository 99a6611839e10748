package dstream

import (
	"context"
	"fmt"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/source"
)

// probe asks the sources that can tell whether they will open, before the run takes the
// checkpoint: on a store without locks, whoever holds it ends by that (CE17).
func (d *durable) probe(ctx context.Context) error {
	if sabotage.On("start-not-probed") {
		return nil
	}
	var last *checkpoint.Plan
	asked := false
	for _, in := range d.r.inputs {
		p, ok := in.src.(source.Prober)
		if !ok {
			continue
		}
		if !asked {
			asked = true
			var err error
			if last, err = checkpoint.OpenRoot(d.store).LastPlan(ctx); err != nil {
				return nil // what is wrong with the root, the opening tells
			}
		}
		err := d.r.do("look at source "+in.name(), func() error { return p.Probe(ctx, planOf(last, in.name())) })
		if err != nil {
			return fmt.Errorf("open: %w", &ReadError{Source: in.name(), Err: err})
		}
	}
	return nil
}
