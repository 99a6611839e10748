package source

import (
	"context"
	"errors"
	"io"
)

// Drainer is offered by sources that take things in while the job runs and cannot get
// them again: what they hold when the job ends is lost. A graceful stop drains them
// first, and goes on with batches until all of it is in committed epochs.
type Drainer interface {
	// Drain ends the taking in. It returns when what was under way is held, or when ctx
	// ends; from then on Done is true as soon as all that is held is planned. It may be
	// called while any other call but Close is under way, and more than once.
	Drain(ctx context.Context)
	Bounded
}

// intake is where the reader of a lineBuffer stands; the buffer's mu protects it.
type intake struct {
	scanning bool // the reader is in scan
	inRead   bool // and there waits for input, with no whole line in hand
	draining bool
	drained  bool // what comes now is not taken in any more
}

// errDrained ends the scan of a drained source.
var errDrained = errors.New("the source was drained")

// drain implements Drainer for sources of lines.
func (b *lineBuffer) drain(ctx context.Context) {
	wake := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.room.Broadcast()
	})
	defer wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.intake.draining = true
	b.room.Broadcast()
	for b.intake.scanning && !b.intake.inRead && !b.closed && ctx.Err() == nil {
		b.room.Wait()
	}
	b.intake.drained = true
	b.ended = b.err == nil
}

func (b *lineBuffer) scans(is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.intake.scanning = is
	b.room.Broadcast()
}

// taking is r as scan reads it. A read that waits when the source is drained may get
// something later: that was not taken in.
func (b *lineBuffer) taking(r io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if !b.reads(true) {
			return 0, errDrained
		}
		n, err := r.Read(p)
		if !b.reads(false) {
			return 0, errDrained
		}
		return n, err
	})
}

// reads notes that the reader begins or ends to wait for input. It is false if it
// shall not go on.
func (b *lineBuffer) reads(begins bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.intake.inRead = begins
	b.room.Broadcast()
	return !b.intake.drained && !(begins && b.intake.draining)
}
