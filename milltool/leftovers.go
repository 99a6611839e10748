package milltool

import (
	"context"
	"slices"
	"strings"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
)

// leftovers lists the files that no version consists of.
func (r *verifier) leftovers(ctx context.Context) error {
	for _, o := range r.listed {
		if r.named[o.Name] {
			continue
		}
		if n, ok := documentNumber(o.Name); ok && strings.HasPrefix(o.Name, "offsets/") && n > r.newest+1 && !r.unread {
			r.found(damage, o.Name, "the epoch before it is not committed: commits/%d and what follows are gone", r.newest+1)
			continue
		}
		if text := r.leftover(o.Name); text != "" {
			r.found(note, o.Name, "%s", text)
		}
	}
	temps, err := r.store.Leftovers(ctx, "")
	if err != nil {
		return err
	}
	for _, t := range temps {
		r.found(note, t.Name, "a file that was not finished, or is being written")
	}
	return nil
}

const noCommit = "not compared: the commit of its epoch is missing"

// uncommitted reports whether a version that must be kept has no commit.
func (r *verifier) uncommitted(n uint64) bool {
	return n >= r.oldest && n <= r.newest && !slices.Contains(r.kept, n)
}

// leftover says what a file is that no commit names; nothing, if all is well.
func (r *verifier) leftover(name string) string {
	if name == checkpoint.LockName {
		return ""
	}
	if n, ok := documentNumber(name); ok {
		folder, _, _ := strings.Cut(name, "/")
		switch {
		case folder == "owner", r.newest == 0:
			return ""
		case folder == "metadata":
			if n == 1 {
				return "" // the root's first, which has its id
			}
			return "no commit names it: it is not in force"
		case n == r.newest+1 && folder == "offsets":
			return "the plan of the epoch that is under way or pending"
		case n > r.newest && r.unread:
			return "not compared: the newest commit cannot be read"
		case n > r.newest:
			return "it was made while verify ran"
		case r.uncommitted(n):
			return noCommit
		}
		return "below the oldest version that is kept"
	}
	s, ok := checkpoint.ParseStateName(name)
	switch {
	case !ok:
		return "no file of a checkpoint root"
	case s.Version > r.newest && r.unread:
		return "not checked: the newest commit cannot be read"
	case s.Version < r.oldest:
		return "below the oldest version that is kept"
	case s.Version > r.newest:
		return "of an epoch that is under way or pending"
	case r.uncommitted(s.Version):
		return noCommit
	case s.Kind == statefile.Snapshot:
		return "a snapshot of an operator or layout that its version does not have"
	}
	return "no commit names it: it was left by a run that did not finish the epoch"
}
