package dstream

import (
	"context"
	"fmt"
	"time"

	"github.com/statemill/statemill/checkpoint"
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

// wait is pause for the checkpoint. While the session is opened it tells the notices
// first: nobody else would, and a start that tries again and again must not be
// silent. (Later, puts of several workers wait side by side.)
func (d *durable) wait(ctx context.Context, pause time.Duration) error {
	if d.opening {
		if err := d.tellNotices(); err != nil {
			return err
		}
	}
	return d.r.pause(ctx, pause)
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
