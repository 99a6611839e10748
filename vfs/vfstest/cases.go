package vfstest

import (
	"runtime"
	"testing"
)

// testCase is one case, with what it works on opened by the real test.
type testCase struct {
	name string
	test func(t *testing.T, tb TB)
}

func run(t *testing.T, cases []testCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(t, t) })
	}
}

// failing runs the cases and returns the names of those that fail.
func failing(t *testing.T, cases []testCase) (names []string) {
	t.Helper()
	for _, c := range cases {
		r := &recorder{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() {
				if p := recover(); p != nil {
					r.Errorf("panic: %v", p)
				}
			}()
			c.test(t, r)
		}()
		<-done
		if r.failed {
			names = append(names, c.name)
		}
	}
	return names
}

// recorder is a TB that remembers the failure instead of telling it.
type recorder struct{ failed bool }

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) FailNow() {
	r.failed = true
	runtime.Goexit()
}
