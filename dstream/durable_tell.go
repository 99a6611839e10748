package dstream

import (
	"context"
	"fmt"
	"time"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/sabotage"
)

// What a run says while it starts on a checkpoint, and to the checkpoint.

// sourceNames are the names of the job's sources; not nil.
func (d *durable) sourceNames() []string {
	names := []string{}
	for _, in := range d.r.inputs {
		names = append(names, in.name())
	}
	return names
}

// wait is pause for the checkpoint. It tells the notices first: a start that tries again
// and again, and a batch of which a sink or the store does not answer, must not be silent
// until that is over. Workers may wait side by side.
func (d *durable) wait(ctx context.Context, pause time.Duration) error {
	if d.opening || !sabotage.On("retries-told-late") {
		if err := d.tellInOrder(); err != nil {
			return err
		}
	}
	return d.r.pause(ctx, pause)
}

func (d *durable) tellInOrder() error {
	d.r.teller.mu.Lock()
	defer d.r.teller.mu.Unlock()
	return d.tellNotices()
}

// noticeClock tells that the clock has gone back over the stop, so that no batch
// comes for a while.
func (d *durable) noticeClock() {
	c := d.start.Commit
	if c == nil {
		return
	}
	now := d.r.clock.Now()
	if behind := time.Unix(0, c.Time).Sub(now); behind > d.r.ssc.cfg.interval {
		d.notice(Notice{Kind: checkpoint.NoticeStart, Text: fmt.Sprintf(
			"the clock is %v behind the last batch, whose time was %s: the next one waits until the clock has passed it; batch times never go back",
			behind, time.Unix(0, c.Time).UTC().Format(time.RFC3339))})
	}
}
