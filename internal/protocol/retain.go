package protocol

import "github.com/statemill/statemill/internal/sabotage"

// Retention is what a run knows when it deletes: a commit of its own or one that it
// loaded, that passed the owner check (P3).
type Retention struct {
	// Commit is its epoch.
	Commit uint64
	// Floor is the F that it carries: the oldest epoch that is kept. F never falls.
	Floor uint64
}

// File is what a file's name and the commits tell of it.
type File struct {
	// Epoch is the number in its name.
	Epoch uint64
	// Data says that it is a delta or a base of an operator, or a temporary file of
	// one; false for a snapshot, whose chain hash decides, and for documents.
	Data bool
	// Committed says that commits/Epoch is there, and Named that it names the file.
	Committed, Named bool
}

// Believed is P5: nothing below the newest commit's F is read or believed, whatever
// lies there; a frozen run may have put it into a hole (CE4).
func (r Retention) Believed(epoch uint64) bool { return epoch >= r.Floor }

// Deletable is P5: (a) everything below the F of a commit that passed the owner
// check; (b) at F or above, deltas and temporary files of an epoch whose commit is
// there and does not name them. Files of an epoch without a commit are never
// deleted, by any run at any time: some run may yet commit them (CE6, CE7).
func (r Retention) Deletable(f File) bool {
	if !r.Believed(f.Epoch) {
		return true
	}
	if sabotage.On("orphans-by-view") {
		return f.Data && !f.Named
	}
	return f.Data && f.Committed && !f.Named
}
