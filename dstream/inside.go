package dstream

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// ErrInside: Stop or Wait was called from a function that the run itself calls (a
// listener, an output, an operator's function); it would wait for itself for
// ever. Call it from another goroutine, or cancel the context given to Run. (Of
// which run is not looked at: to stop another context from there, use another
// goroutine too.) Run does not wait there: its own context has been started, which
// is ErrStarted, and another one may run within a function.
var ErrInside = errors.New("called from inside the run")

func errInside(call string) error { return fmt.Errorf("dstream: %s: %w", call, ErrInside) }

// inside says whether the calling goroutine is in a call made by a run: then
// the run's own frames are on its stack.
func inside() bool {
	var pcs [128]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "github.com/statemill/statemill/dstream.(*run).") ||
			strings.HasPrefix(f.Function, "github.com/statemill/statemill/dstream.(*executor).") {
			return true
		}
		if !more {
			return false
		}
	}
}
