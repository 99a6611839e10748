package protocol

import "github.com/statemill/statemill/internal/sabotage"

// File is what a file's name and the commits tell of it.
type File struct {
	// Epoch is the number in its name.
	Epoch uint64
	// Data says that it is a delta or a base of an operator, or a temporary file of
	// one; false for a document, and for a snapshot, whose chain hash decides.
	Data bool
	// Committed says that commits/Epoch is there, and Named that it names the file.
	Committed, Named bool
}

// Deletable is P5. floor is the F of a commit that passed the owner check; F never
// falls, and nothing below the newest commit's is read or believed, whatever lies
// there, for a frozen run may put something into a hole (CE4). So a run deletes (a)
// what is below floor; (b) above it, data of an epoch whose commit is there and does
// not name it. Files of an epoch without a commit are never deleted, by any run at
// any time: somebody may yet commit them (CE6, CE7).
func Deletable(f File, floor uint64) bool {
	switch {
	case f.Epoch < floor:
		return true
	case !f.Data || f.Named:
		return false
	}
	return f.Committed || sabotage.On("orphans-by-view")
}
