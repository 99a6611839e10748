//go:build sabotage

package sabotage

import "syscall"

// Enabled says that faults are compiled in.
const Enabled = true

// On reports whether the named fault is switched on. It reads the environment
// at every call, so a test can switch faults with t.Setenv.
func On(name string) bool {
	v, ok := syscall.Getenv("STATEMILL_SABOTAGE")
	return ok && v == name
}
