package checkpoint

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/sabotage"
)

// Folders of a root, each with its slash.
const (
	ownerFolder    = "owner/"
	metadataFolder = "metadata/"
	planFolder     = "offsets/"
	commitFolder   = "commits/"
	countsFolder   = "counts/"
	stateFolder    = "state/"

	// LockName is the name of the lock that a run holds on stores with locks.
	LockName = "lock"
)

// OwnerName gives the name of the document of a term.
func OwnerName(term uint64) string { return numbered(ownerFolder, term) }

// MetadataName gives the name of a metadata document.
func MetadataName(seq uint64) string { return numbered(metadataFolder, seq) }

// PlanName gives the name of the plan of an epoch.
func PlanName(epoch uint64) string { return numbered(planFolder, epoch) }

// CommitName gives the name of the commit of an epoch.
func CommitName(epoch uint64) string { return numbered(commitFolder, epoch) }

// CountsName gives the name of what a run counted in an epoch.
func CountsName(epoch, term uint64) string {
	return numbered(countsFolder, epoch) + "." + strconv.FormatUint(term, 10)
}

// ParseCountsName reads what CountsName gives; ok is false for anything else.
func ParseCountsName(name string) (epoch, term uint64, ok bool) {
	rest, ok := strings.CutPrefix(name, countsFolder)
	e, t, dot := strings.Cut(rest, ".")
	epoch, okE := parseNumber(e)
	term, okT := parseNumber(t)
	return epoch, term, ok && dot && okE && okT
}

func numbered(folder string, n uint64) string { return folder + strconv.FormatUint(n, 10) }

// parseNumber reads the decimal form that strconv writes, and no other.
func parseNumber(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && strconv.FormatUint(n, 10) == s
}

// StateFolder gives the folder of a partition's files in a layout of an
// operator, with its slash. Layout 0 is the first; layout k stands in r<k>.
func StateFolder(number, layout, part int) string {
	if layout == 0 {
		return fmt.Sprintf("%s%d/%d/", stateFolder, number, part)
	}
	return fmt.Sprintf("%s%d/r%d/%d/", stateFolder, number, layout, part)
}

// operatorFolder is the folder of all state of an operator.
func operatorFolder(number int) string { return fmt.Sprintf("%s%d/", stateFolder, number) }

// StateName says which state file a name is that of.
type StateName struct {
	// Number and Layout are those of the operator, Part is the partition.
	Number, Layout, Part int
	// Version is the version that the file makes, Term the run that wrote it.
	Version, Term uint64
	// Kind is Delta, for bases too, or Snapshot.
	Kind statefile.Kind
}

// String gives the name below the root.
func (n StateName) String() string {
	return StateFolder(n.Number, n.Layout, n.Part) + n.Base()
}

// Base gives the last element of the name, which is what commits hold.
func (n StateName) Base() string {
	if sabotage.On("state-name-without-term") {
		n.Term = 0
	}
	return fmt.Sprintf("%d.%d.%v", n.Version, n.Term, n.Kind)
}

// ParseStateName reads what String gives; ok is false for anything else.
func ParseStateName(name string) (n StateName, ok bool) {
	rest, ok := strings.CutPrefix(name, stateFolder)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) < 3 || len(parts) > 4 {
		return n, false
	}
	nums := []*int{&n.Number, &n.Part}
	folders := parts[:len(parts)-1]
	if len(folders) == 3 {
		layout, isLayout := strings.CutPrefix(folders[1], "r")
		if !isLayout || !parseInt(layout, &n.Layout) || n.Layout == 0 {
			return n, false
		}
		folders = []string{folders[0], folders[2]}
	}
	for i, f := range folders {
		if !parseInt(f, nums[i]) {
			return n, false
		}
	}
	return n, n.parseBase(parts[len(parts)-1])
}

// parseBase reads what Base gives.
func (n *StateName) parseBase(s string) bool {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return false
	}
	var okV, okT bool
	n.Version, okV = parseNumber(parts[0])
	n.Term, okT = parseNumber(parts[1])
	switch parts[2] {
	case "delta":
		n.Kind = statefile.Delta
	case "snapshot":
		n.Kind = statefile.Snapshot
	default:
		return false
	}
	return okV && okT
}

func parseInt(s string, to *int) bool {
	n, ok := parseNumber(s)
	if !ok || n > 1<<31-1 {
		return false
	}
	*to = int(n)
	return true
}
