package receiver

import (
	"errors"
	"strings"

	"github.com/statemill/statemill/internal/guard"
)

// ErrGoexit is why a receiver failed that ended its goroutine with runtime.Goexit
// instead of returning; functions that end a test do so.
var ErrGoexit = errors.New("runtime.Goexit was called")

// apart calls a user's function in a goroutine of its own, waits for it, and makes an
// error of its panic and of the end of its goroutine. (That it is a method lets a run
// see that the caller of its Stop is one that it waits for.)
func (s *Source[T]) apart(f func() error) error {
	done := make(chan error, 1)
	go func() {
		err := ErrGoexit
		defer func() { done <- err }()
		err = called(f)
	}()
	return <-done
}

func called(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked{guard.Error(v)}
		}
	}()
	return f()
}

// panicked is an error with a stack behind its first line.
type panicked struct{ error }

// oneLine is an error's text for a report: without the stack of a panic.
func oneLine(err error) string {
	text := err.Error()
	if _, ok := err.(panicked); ok {
		text, _, _ = strings.Cut(text, "\n")
	}
	return strings.ReplaceAll(text, "\n", "; ") // of errors.Join
}
