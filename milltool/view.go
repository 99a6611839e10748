package milltool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
)

// view is a root as one reading finds it.
type view struct {
	dir    string
	root   *checkpoint.Root
	newest *checkpoint.Commit // nil: nothing is committed
	damage error              // the newest commit is not known for it, and newest is one that can be read
	seen   map[string]bool    // notices
	notes  []string
}

// read calls do with the root in dir, again from the newest commit if files
// vanish meanwhile, and then tells what the reading noticed. do prints nothing
// before it has read everything, and heeds the view's damage.
func (c *call) read(ctx context.Context, dir string, do func(v *view) error) error {
	store, err := c.existing(dir)
	if err != nil {
		return err
	}
	root := checkpoint.OpenRoot(store)
	var v *view
	err = root.ReadPast(ctx, func(newest *checkpoint.Commit, damage error) error {
		v = &view{dir: dir, root: root, newest: newest, damage: damage, seen: map[string]bool{}}
		c.out.Reset()
		if err := v.isRoot(ctx); err != nil {
			return err
		}
		return do(v)
	})
	c.told(v)
	return err
}

// told tells what a reading noticed; v is nil if it did not begin.
func (c *call) told(v *view) {
	if v == nil {
		return
	}
	for _, n := range v.notes {
		c.note("%s", n)
	}
}

// isRoot tells a root without commits from a folder that is none.
func (v *view) isRoot(ctx context.Context) error {
	if v.newest != nil || v.damage != nil {
		return nil
	}
	owner, err := v.root.Owner(ctx)
	if err == nil && owner == nil {
		err = fmt.Errorf("%w in %s: it has neither commits/ nor owner/", errNoRoot, v.dir)
	}
	return err
}

// notice keeps what the reader says, once.
func (v *view) notice(n checkpoint.Notice) {
	if !v.seen[n.Text] {
		v.seen[n.Text] = true
		v.notes = append(v.notes, n.Text)
	}
}

// oldest is the oldest version that is kept.
func (v *view) oldest(ctx context.Context) (uint64, error) {
	if v.damage != nil {
		return v.oldestListed(ctx)
	}
	if v.newest.Floor > 0 {
		return v.newest.Floor, nil
	}
	all, err := v.root.Commits(ctx)
	if err != nil || len(all) == 0 {
		return v.newest.Epoch, err
	}
	return all[0], nil
}

// at gives the commit of a version: the newest, or the one that was asked for.
func (v *view) at(ctx context.Context, want versionFlag) (*checkpoint.Commit, error) {
	if v.damage != nil {
		return v.past(ctx, want)
	}
	if v.newest == nil {
		return nil, fmt.Errorf("no version is committed in %s yet", v.dir)
	}
	if !want.given || want.n == v.newest.Epoch {
		return v.newest, nil
	}
	oldest, err := v.oldest(ctx)
	if err != nil {
		return nil, err
	}
	if want.n < oldest || want.n > v.newest.Epoch {
		return nil, fmt.Errorf("version %d is not kept in %s: it keeps %d to %d", want.n, v.dir, oldest, v.newest.Epoch)
	}
	return v.root.Commit(ctx, want.n)
}

// noOperatorError is a name that no operator of a version has.
type noOperatorError struct {
	dir, name string
	version   uint64
	have      []string
}

// Error lists the names there are.
func (e *noOperatorError) Error() string {
	have := "it has none"
	if len(e.have) > 0 {
		have = "it has " + strings.Join(e.have, ", ")
	}
	return fmt.Sprintf("there is no operator %q in version %d of %s: %s", shorten(e.name), e.version, e.dir, have)
}

// operator finds an operator by its name, as the version of a commit has it:
// the commit has its partitions, all of them. Without such an operator the
// error is a *noOperatorError.
func (v *view) operator(ctx context.Context, commit *checkpoint.Commit, name string) (*checkpoint.Operator, error) {
	meta, err := v.root.Metadata(ctx, commit.Metadata)
	if err != nil {
		return nil, err
	}
	op := meta.Operator(name)
	if op == nil {
		e := &noOperatorError{dir: v.dir, name: name, version: commit.Epoch}
		for i := range meta.Operators {
			e.have = append(e.have, word(meta.Operators[i].Name))
		}
		return nil, e
	}
	return op, fits(commit, op)
}

// fits checks that a commit has what its metadata says of an operator.
func fits(commit *checkpoint.Commit, op *checkpoint.Operator) error {
	if op.Since > commit.Epoch {
		return &checkpoint.CorruptError{Path: checkpoint.MetadataName(commit.Metadata), Number: commit.Metadata, Reason: fmt.Sprintf(
			"operator %q begins with version %d, and version %d has it", op.Name, op.Since, commit.Epoch)}
	}
	if oc := commit.Operator(op.Number); oc == nil || oc.Layout != op.Layout || len(oc.Partitions) != op.Partitions {
		return &checkpoint.CorruptError{Path: checkpoint.CommitName(commit.Epoch), Number: commit.Epoch, Reason: fmt.Sprintf(
			"it does not have operator %q in layout %d with %d partitions, as its metadata says", op.Name, op.Layout, op.Partitions)}
	}
	return nil
}

// nextStep says what to do about an error whose text does not say it.
func nextStep(err error) string {
	var newest *newestError
	var replay *replayError
	switch {
	case errors.As(err, &replay) && replay.input() != "":
		return fmt.Sprintf("the input %s is gone: an epoch can be computed again as long as its sources have the records that it read", replay.input())
	case errors.As(err, &newest):
		return newest.nextStep()
	case errors.Is(err, errNoRoot):
		return "give the folder that the job's WithCheckpoint names"
	case errors.Is(err, checkpoint.ErrOwned):
		return "-takeover takes it by force"
	case errors.Is(err, checkpoint.ErrVanished):
		return "if no job runs on the root, a file is missing: `verify` says which; else the job deletes old versions faster than they are read: read a newer one, or keep more snapshots"
	case errors.Is(err, statefile.ErrCorrupt), errors.Is(err, statefile.ErrMismatch):
		return "`verify` lists all damage; `repair` writes snapshots anew, but a damaged delta comes back only from a copy of the root"
	case errors.Is(err, statefile.ErrFormat):
		return "use the release that wrote the root, or a newer one"
	case errors.Is(err, fs.ErrNotExist):
		return "a file that a commit names is gone: `verify` lists all damage"
	}
	return ""
}
