//go:build !sabotage

package sabotage

// Enabled says that faults are compiled in.
const Enabled = false

// On is false in this build, whatever the name.
func On(string) bool { return false }
