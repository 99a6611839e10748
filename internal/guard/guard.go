// Package guard makes a panic of a user's function an error, so that a fault of theirs
// ends a batch or a start and not the process.
//
// Tasks have a record to blame, and an error of their own: rdd.PanicError.
// This is for functions that are called outside of a task: encoders of outputs,
// migrations, partitioners, codecs of states. It does not catch the end of a goroutine
// (runtime.Goexit), nor what Go cannot recover from.
package guard

import (
	"fmt"
	"runtime/debug"
)

// Error is the error of a panic that was just recovered: its value, and on the lines
// behind it the stack. Call it in the deferred function that has recovered v: the
// stack is then still that of the panic.
//
// A panic with an error does not count as that error, however well it is known:
// nobody has returned it.
func Error(v any) error { return fmt.Errorf("panic: %v\n%s", v, debug.Stack()) }

// Catch makes a panic of the function that defers it the function's error:
//
//	func call(f func() error) (err error) {
//		defer guard.Catch(&err)
//		return f()
//	}
func Catch(err *error) {
	if v := recover(); v != nil {
		*err = Error(v)
	}
}
