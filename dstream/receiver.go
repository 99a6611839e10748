package dstream

import (
	"errors"
	"fmt"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/source/receiver"
	"github.com/statemill/statemill/vfs"
)

// ReceiverStream gives what a receiver takes in from outside: a user's own, or
// receiver.Lines for a TCP server that sends lines. The records go to a log in the
// local directory dir first, so with a checkpoint what was acknowledged is in exactly
// one epoch, whatever crashes; package receiver has the promise. dir belongs to this
// stream of this job, with this checkpoint, for ever.
//
// Without WithCheckpoint, and with a new checkpoint over an old dir, nobody knows what
// was read: such a run begins at the oldest record that dir still has, so it reads part
// of what earlier runs have read once more. Nothing refuses that. Begin anew with a new
// dir.
//
// c is how records are written; nil means codec.For[T]. Each of set may set the
// exported fields of the source (MaxRate, MaxBytes …) before it is used; its Clock
// is the context's, and its events go to ReceiverStarted, ReceiverFailed and
// ReceiverStopped of the listeners as well as to its own OnEvent. The receiver must not
// call Stop or Wait of the context, which would wait for it: that is ErrInside.
//
// The stream's name is the source's name, as in From.
func ReceiverStream[T any](ssc *StreamingContext, name, dir string, c codec.Codec[T], r receiver.Receiver[T], set ...func(*receiver.Source[T])) *DStream[T] {
	var wrong []error
	if c == nil {
		var err error
		if c, err = codec.For[T](); err != nil {
			wrong = append(wrong, fmt.Errorf("records have no codec: %w", err))
		}
	}
	if dir == "" {
		wrong = append(wrong, errors.New("the directory's name is empty"))
	}
	if r == nil {
		wrong = append(wrong, errors.New("the receiver is nil"))
	}
	s := receiver.New(vfs.Disk(), dir, c, r)
	for _, f := range set {
		if f == nil {
			wrong = append(wrong, errNilFunction)
			continue
		}
		f(s)
	}
	if ssc != nil {
		s.Clock = ssc.cfg.clock
		own := s.OnEvent
		s.OnEvent = func(e receiver.Event) {
			ssc.mu.Lock()
			run := ssc.run
			ssc.mu.Unlock()
			if run != nil {
				run.noteReceiver(name, e)
			}
			if own != nil {
				own(e)
			}
		}
	}
	d := from[T](ssc, "ReceiverStream", name, s)
	d.node.check(wrong...)
	return d
}
