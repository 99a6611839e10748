package dstream

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/statemill/statemill/internal/sabotage"
)

// ErrInside: Stop or Wait was called from a function that the run itself calls (a
// listener, an output, an operator's function, a receiver); it would wait for itself for
// ever. Call it from another goroutine, or cancel the context given to Run. (Of
// which run is not looked at: to stop another context from there, use another
// goroutine too.) Run does not wait there: its own context has been started, which
// is ErrStarted, and another one may run within a function.
var ErrInside = errors.New("called from inside the run")

func errInside(call string) error { return fmt.Errorf("dstream: %s: %w", call, ErrInside) }

// inside says whether the calling goroutine is in a call made by a run, or is one that a
// run's end waits for: then such frames are on its stack, however deep below.
func inside() bool {
	pcs := make([]uintptr, 128)
	n := runtime.Callers(2, pcs)
	for n == len(pcs) && !sabotage.On("deep-call-is-outside") {
		pcs = make([]uintptr, 2*len(pcs))
		n = runtime.Callers(2, pcs)
	}
	frames := runtime.CallersFrames(pcs[:n])
	for {
		f, more := frames.Next()
		if name, ours := strings.CutPrefix(f.Function, "github.com/statemill/statemill/"); ours {
			for _, of := range insiders {
				if strings.HasPrefix(name, of) {
					return true
				}
			}
		}
		if !more {
			return false
		}
	}
}

// insiders are the types of which a method is on the stack of every goroutine of a run
// while it is in a user's code: the run's own, and those of sources that call a user's
// receiver or reader.
var insiders = [...]string{
	"dstream.(*run).", "dstream.(*executor).", "dstream.(*draining).",
	"source/receiver.(*Source[...]).", "source.(*LineReader).",
}
