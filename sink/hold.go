package sink

import (
	"fmt"
	"sync"

	"github.com/statemill/statemill/internal/sabotage"
)

// Hold is which run has a unit's object: what a unit keeps so that two runs of one
// process do not take it from each other, which would write the one's epochs under the
// other's root. The zero value is free. Its methods may be called from any goroutine,
// as two contexts have a goroutine each.
type Hold struct {
	mu   sync.Mutex
	held bool
	by   Fence
}

// Take is what Fence begins with, once it has found nothing wrong with its arguments:
// the unit is the run's from then on until Release, whatever becomes of the fence. If
// another run has it the error is an *InUseError; Fence returns it and touches nothing.
func (h *Hold) Take(unit string, f Fence) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held && (h.by.Root != f.Root || h.by.Run != f.Run) && !sabotage.On("sink-in-use-unseen") {
		return &InUseError{Unit: unit, Root: f.Root, Run: f.Run, Term: f.Term, ByRoot: h.by.Root, ByRun: h.by.Run, ByTerm: h.by.Term}
	}
	h.held, h.by = true, f
	return nil
}

// Release is what Close ends with. It may be called more than once.
func (h *Hold) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held, h.by = false, Fence{}
}

// InUseError is a fence of a unit's object that another run of the process has, of this
// root or of another one. Nothing was touched.
type InUseError struct {
	// Unit is the unit's name.
	Unit string
	// Root, Run and Term are those of the run that was refused.
	Root, Run string
	Term      uint64
	// ByRoot, ByRun and ByTerm are those of the run that has the unit.
	ByRoot, ByRun string
	ByTerm        uint64
}

// Error names the unit and both runs.
func (e *InUseError) Error() string {
	return fmt.Sprintf("sink %s: run %q of root %q (term %d) cannot have it: run %q of root %q (term %d) has it and has not closed it: give each context a sink of its own, or run one after the other",
		e.Unit, e.Run, e.Root, e.Term, e.ByRun, e.ByRoot, e.ByTerm)
}

// Unwrap gives ErrMisuse.
func (e *InUseError) Unwrap() error { return ErrMisuse }

// Permanent says that trying again does not help.
func (e *InUseError) Permanent() bool { return true }
