//go:build invariants || race

package invariants

import "fmt"

// Enabled says that the checks are compiled in.
const Enabled = true

// Check panics with the formatted text when cond is false. Arguments are
// evaluated by the caller in every build: guard costly ones with Enabled.
func Check(cond bool, format string, args ...any) {
	if !cond {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
