// Package invariants holds the assertions that cost too much for production.
//
// They are on under the build tag "invariants" and under the race detector, so
// that every race run of the tests checks them too. Elsewhere [Enabled] is the
// constant false and a guarded check compiles to nothing.
//
// An invariant states what the program itself must keep true. Faults of users,
// files and networks are errors, never invariants.
package invariants
