package milltool

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
)

// mostNotes is how many files of one folder are told one by one, if the same is to be
// said of each.
const mostNotes = 3

// folded is the files of one folder of which the same is to be said.
type folded struct {
	folder, text string
	names        []string
	first, last  uint64
}

// leftovers lists the files that no version consists of.
func (r *verifier) leftovers(ctx context.Context) error {
	var notes []*folded
	for _, o := range r.listed {
		if r.named[o.Name] {
			continue
		}
		if n, ok := documentNumber(o.Name); ok && strings.HasPrefix(o.Name, "offsets/") && n > r.newest+1 && !r.unread {
			r.found(damage, o.Name, "the epoch before it is not committed: commits/%d and what follows are gone", r.newest+1)
			continue
		}
		if text := r.leftover(o.Name); text != "" {
			notes = fold(notes, o.Name, text)
		}
	}
	for _, f := range notes {
		if len(f.names) > mostNotes {
			r.found(note, f.folder, "%d files of versions %d to %d: %s", len(f.names), f.first, f.last, f.text)
			continue
		}
		for _, name := range f.names {
			r.found(note, name, "%s", f.text)
		}
	}
	if err := r.oddFolders(); err != nil {
		return err
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

// fold adds a file to those of its folder of which the same is to be said. Files without
// a version stay alone.
func fold(notes []*folded, name, text string) []*folded {
	n, ok := fileVersion(name)
	folder := path.Dir(name) + "/"
	if ok {
		for _, f := range slices.Backward(notes) {
			if f.folder == folder && f.text == text {
				f.names = append(f.names, name)
				f.first, f.last = min(f.first, n), max(f.last, n)
				return notes
			}
		}
	} else {
		folder = "" // nobody's
	}
	return append(notes, &folded{folder: folder, text: text, names: []string{name}, first: n, last: n})
}

// fileVersion gives the version in the name of a file of versions.
func fileVersion(name string) (uint64, bool) {
	if s, ok := checkpoint.ParseStateName(name); ok {
		return s.Version, true
	}
	if epoch, _, ok := checkpoint.ParseCountsName(name); ok {
		return epoch, true
	}
	n, ok := documentNumber(name)
	return n, ok && (strings.HasPrefix(name, "offsets/") || strings.HasPrefix(name, "commits/"))
}

// uncommitted says of a version that must be kept why its commit does not tell which
// files are its own; nothing, if it does.
func (r *verifier) uncommitted(n uint64) string {
	switch {
	case n < r.oldest || n > r.newest:
	case !slices.Contains(r.kept, n):
		return "not compared: the commit of its epoch is missing"
	case r.blind[n]:
		return "not compared: the commit of its epoch cannot be read"
	}
	return ""
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
			if len(r.blind) > 0 || r.unread {
				return "no commit that can be read names it"
			}
			return "no commit names it: it is not in force"
		case n == r.newest+1 && folder == "offsets":
			return "the plan of the epoch that is under way or pending"
		case n > r.newest && r.unread:
			return "not compared: the newest commit cannot be read"
		case n > r.newest:
			return "it was made while verify ran"
		case r.uncommitted(n) != "":
			return r.uncommitted(n)
		}
		return "below the oldest version that is kept"
	}
	if n, _, ok := checkpoint.ParseCountsName(name); ok {
		switch {
		case n == r.newest || r.newest == 0:
			return ""
		case n > r.newest && r.unread:
			return "not compared: the newest commit cannot be read"
		case n < r.newest:
			return "what was counted in an epoch; the commit of a later one stands, so nobody needs it"
		}
		return "what was counted in an epoch that is under way or pending"
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
	case r.uncommitted(s.Version) != "":
		return r.uncommitted(s.Version)
	case s.Kind == statefile.Snapshot:
		return "a snapshot of an operator or layout that its version does not have"
	}
	return "no commit names it: it was left by a run that did not finish the epoch"
}
