package source

import "os"

// Stdin returns a source of the lines of the process's standard input, named
// "stdin". It never closes it.
func Stdin() *LineReader { return Lines("stdin", os.Stdin) }
