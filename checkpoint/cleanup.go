package checkpoint

import (
	"strings"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/protocol"
	"github.com/statemill/statemill/internal/sabotage"
)

// Deletable reports whether a run may delete an object of the root (P5). newest
// is a commit of this run after which the owner check has found nobody newer;
// commit gives the commit of an epoch, nil if there is none or it is not known.
//
// That is so for plans, commits and state files below the floor of newest, and
// for deltas at or above it that the commit of their epoch does not name. What
// belongs to an epoch without a commit is never deleted: somebody may still
// commit or adopt it (CE6, CE7). Snapshots are named by no commit, so only the
// floor decides. What was counted in an epoch goes when the next one is committed:
// until then somebody may take its commit out of the root by hand, and the epoch is
// adopted. Owners and metadata stay.
func Deletable(name string, newest *Commit, commit func(epoch uint64) *Commit) bool {
	if n, _, ok := ParseCountsName(name); ok {
		return protocol.Deletable(protocol.File{Epoch: n, Data: true}, newest.Epoch)
	}
	for _, folder := range []string{planFolder, commitFolder} {
		if rest, ok := strings.CutPrefix(name, folder); ok {
			n, ok := parseNumber(rest)
			return ok && protocol.Deletable(protocol.File{Epoch: n}, newest.Floor)
		}
	}
	n, ok := ParseStateName(name)
	switch {
	case !ok:
		return false
	case n.Kind == statefile.Delta && n.Version > newest.Epoch:
		return sabotage.On("uncommitted-deleted")
	}
	f := protocol.File{Epoch: n.Version, Data: n.Kind == statefile.Delta}
	if f.Data && n.Version >= newest.Floor {
		if c := commit(n.Version); c != nil {
			f.Committed, f.Named = true, c.Names(n)
		}
	}
	return protocol.Deletable(f, newest.Floor)
}

// Names reports whether the commit names a state file.
func (c *Commit) Names(n StateName) bool {
	oc := c.Operator(n.Number)
	return oc != nil && oc.Layout == n.Layout && n.Part < len(oc.Partitions) && oc.Partitions[n.Part].File == n.Base()
}

// DeletableLeftover reports the same of what a broken-off put has left, by the
// name that it was to get and the tag of its store, of which own is this run's.
// Temporary files of an epoch whose commit is there are of no use to anybody; of
// snapshots, those below the floor.
func DeletableLeftover(target, tag, own string, newest *Commit, commit func(epoch uint64) *Commit) bool {
	if tag == own {
		return false // it may be running
	}
	if n, ok := ParseStateName(target); ok && n.Kind == statefile.Delta && n.Version >= newest.Floor {
		return n.Version <= newest.Epoch && commit(n.Version) != nil
	}
	if n, _, ok := ParseCountsName(target); ok {
		return n <= newest.Epoch
	}
	return Deletable(target, newest, commit)
}
