package dstream

import (
	"runtime"
	"strconv"
	"strings"
)

// ours are the packages whose frames a user does not want to see: a fault of
// the graph is reported at the line that called into them.
var ours = [...]string{
	"github.com/statemill/statemill/dstream.",
	"github.com/statemill/statemill/kafka.",
	"github.com/statemill/statemill/eventtime.",
	"github.com/statemill/statemill/process.",
}

// caller gives the file:line of the innermost frame that is not ours.
func caller() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if f.Function != "" && !isOurs(f.Function) {
			return f.File + ":" + strconv.Itoa(f.Line)
		}
		if !more {
			return "unknown"
		}
	}
}

func isOurs(function string) bool {
	for _, prefix := range ours {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}
