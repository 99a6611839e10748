package rdd

import (
	"path"
	"reflect"
	"slices"
	"strings"
)

// Place is the file:line of the code that panicked: the innermost frame that is neither
// of Go's own packages nor of those of this module that call users' functions. It is ""
// if the stack does not tell.
func (e *PanicError) Place() string {
	frames := belowPanic(string(e.Stack))
	own := slices.IndexFunc(frames, func(f stackFrame) bool { return !f.within("runtime", "reflect") })
	if own < 0 {
		return ""
	}
	goroot := goroot(frames)
	for _, f := range frames[own:] {
		if !f.standard(goroot) && !f.ours() {
			return f.place
		}
	}
	return frames[own].place
}

// stackFrame is one of a stack's text.
type stackFrame struct {
	pkg   string // its import path
	place string // file:line
}

// belowPanic lists the frames below the newest panic, the innermost first.
func belowPanic(stack string) (frames []stackFrame) {
	lines := strings.Split(stack, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "panic(") })
	if at < 0 {
		return nil
	}
	for ; at+1 < len(lines) && strings.HasPrefix(lines[at+1], "\t"); at += 2 {
		place, _, _ := strings.Cut(lines[at+1][1:], " ")
		function := lines[at]
		if strings.HasPrefix(function, "panic(") {
			function = "runtime." + function
		}
		slash := strings.LastIndexByte(function, '/') + 1
		name, _, _ := strings.Cut(function[slash:], ".") // what follows are the name and the arguments, which have no slash
		frames = append(frames, stackFrame{function[:slash] + name, place})
	}
	return frames
}

// goroot is the folder of Go's own sources; "" in a program built with -trimpath.
func goroot(frames []stackFrame) string {
	for _, f := range frames {
		if i := strings.Index(f.place, "runtime/panic.go:"); i >= 0 && f.pkg == "runtime" {
			return f.place[:i]
		}
	}
	return ""
}

func (f stackFrame) within(pkgs ...string) bool {
	return slices.ContainsFunc(pkgs, func(p string) bool { return f.pkg == p || strings.HasPrefix(f.pkg, p+"/") })
}

// standard says that the frame is of Go's own packages. Without their folder, what has
// no dot in its first name is taken for one.
func (f stackFrame) standard(goroot string) bool {
	if goroot != "" {
		return strings.HasPrefix(f.place, goroot)
	}
	first, _, _ := strings.Cut(f.pkg, "/")
	return f.pkg != "main" && !strings.Contains(first, ".")
}

// ours says that the frame is of the code between the run and users' functions. This
// module's tests are not.
func (f stackFrame) ours() bool {
	dir, name := path.Split(f.pkg)
	return dir == path.Dir(reflect.TypeFor[PanicError]().PkgPath())+"/" &&
		slices.Contains([]string{"rdd", "staterdd", "dstream", "eventtime", "process"}, name) && !strings.Contains(f.place, "_test.go:")
}
