// Command sabotage proves that the tests can fail: it breaks the product one named line at a time and demands that the
// test named for the break fails.
//
// A break is one line in the source, such as
//
//	if sabotage.On("no-undo") { return }
//
// which compiles to nothing without the build tag sabotage. With the tag, STATEMILL_SABOTAGE chooses the break. The table
// in table.go says which test must catch which break. Each named test runs twice on the same binary: unbroken, where it
// must pass, and broken, where it must be reported as failed; a build error, a time-out, a skip or the death of the whole
// process is not a catch. A break in the source without a line in the table, and a line without a break, are faults too.
//
// Usage: go run ./test/sabotage [-only name] [-v]. Exit 0 if all breaks are caught, else 1.
package main
