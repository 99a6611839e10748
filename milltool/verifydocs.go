package milltool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

// damaged tells damage of documents and state files from other errors.
func damaged(err error) bool {
	return errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, checkpoint.ErrFormat) || errors.Is(err, checkpoint.ErrGap) ||
		errors.Is(err, checkpoint.ErrNoStart) || checkpoint.Bad(err)
}

// documents reads every document that is listed, then looks for those that the
// kept versions need.
func (r *verifier) documents(ctx context.Context) error {
	for _, o := range r.listed {
		n, ok := documentNumber(o.Name)
		if epoch, _, counts := checkpoint.ParseCountsName(o.Name); counts {
			n, ok = epoch, true
		}
		if ok {
			if err := r.document(ctx, o.Name, n); err != nil {
				return err
			}
		}
	}
	next := r.oldest
	for _, n := range r.kept {
		if n > next {
			what := "missing"
			if n > next+1 {
				what = fmt.Sprintf("missing, and so are all up to commits/%d", n-1)
			}
			r.found(damage, checkpoint.CommitName(next), "%s: the newest commit %d keeps all versions from %d on", what, r.newest, r.oldest)
		}
		next = n + 1
		if err := r.version(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// documentNumber gives the number in the name of a document.
func documentNumber(name string) (uint64, bool) {
	folder, last, _ := strings.Cut(name, "/")
	if !slices.Contains([]string{"owner", "metadata", "offsets", "commits"}, folder) {
		return 0, false
	}
	n, err := parseVersion(last)
	return n, err == nil && number(n) == last
}

// below tells that a document is of a version that is no longer kept, or else of no use
// to anybody any more.
func (r *verifier) below(name string, n uint64) bool {
	if _, _, ok := checkpoint.ParseCountsName(name); ok {
		return n < r.newest
	}
	return (strings.HasPrefix(name, "commits/") || strings.HasPrefix(name, "offsets/")) && n < r.oldest
}

// document reads one document and checks it by itself.
func (r *verifier) document(ctx context.Context, name string, n uint64) error {
	b, err := r.store.Get(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // if it is needed, it will be missed
	}
	if err != nil {
		return err
	}
	r.files++
	r.bytes += int64(len(b))
	_, err = checkpoint.DecodeDocument(name, b)
	switch {
	case err != nil && r.below(name, n):
		r.found(note, name, "damaged, and no longer needed")
	case err != nil:
		r.found(damage, name, "%v", err)
	}
	return nil
}

// version looks for the documents of a version and compares them with one
// another.
func (r *verifier) version(ctx context.Context, n uint64) error {
	commit, err := r.root.Commit(ctx, n)
	if err != nil {
		r.blind[n] = true
		return r.missing(ctx, checkpoint.CommitName(n), n, err)
	}
	r.named[checkpoint.CommitName(n)] = true
	plan, err := r.root.Plan(ctx, n)
	if err != nil {
		if err := r.missing(ctx, checkpoint.PlanName(n), n, err); err != nil {
			return err
		}
	} else {
		r.named[checkpoint.PlanName(n)] = true
		if plan.Kind != commit.Kind || plan.Time != commit.Time {
			r.found(damage, checkpoint.CommitName(n), "its kind and time (%s, %s) are not those of offsets/%d (%s, %s)",
				commit.Kind, stamp(commit.Time), n, plan.Kind, stamp(plan.Time))
		}
	}
	meta, err := r.root.Metadata(ctx, commit.Metadata)
	if err != nil {
		return r.missing(ctx, checkpoint.MetadataName(commit.Metadata), n, err)
	}
	r.named[checkpoint.MetadataName(commit.Metadata)] = true
	for i := range meta.Operators {
		if err := fits(commit, &meta.Operators[i]); err != nil {
			r.found(damage, checkpoint.CommitName(n), "%v", err)
		}
	}
	if len(commit.Operators) != len(meta.Operators) {
		r.found(damage, checkpoint.CommitName(n), "it has %d operators, its metadata has %d", len(commit.Operators), len(meta.Operators))
	}
	for _, term := range []uint64{commit.Term, cmp.Or(plan, &checkpoint.Plan{Term: commit.Term}).Term} {
		name := checkpoint.OwnerName(term)
		if r.named[name] {
			continue
		}
		r.named[name] = true
		if _, err := r.store.Stat(ctx, name); err != nil {
			if err := r.missing(ctx, name, n, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// missing judges an error about a file that version n needs: nothing, if it is
// gone because the version is no longer kept; a finding; or an error of the
// store.
func (r *verifier) missing(ctx context.Context, name string, n uint64, err error) error {
	if !damaged(err) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, checkpoint.ErrNoStart) {
		kept, err := r.keptNow(ctx, n)
		if err != nil {
			return err
		}
		if !kept {
			r.gone++
			return nil
		}
	}
	if r.named[name] && slices.ContainsFunc(r.findings, func(f finding) bool { return f.File == name }) {
		return nil // it has its finding
	}
	if errors.Is(err, fs.ErrNotExist) {
		r.found(damage, name, "missing: version %d needs it", n)
		return nil
	}
	r.found(damage, name, "%v", err)
	return nil
}

// newestTries is how often the newest commit is looked for when what is found seems
// damaged: a clean-up between a listing and the reads after it looks like a gap.
const newestTries = 5

// keptNow asks the root anew whether a version is still kept. Where damage hides the
// answer, it is: then its own files are to be judged as they are.
func (r *verifier) keptNow(ctx context.Context, n uint64) (bool, error) {
	now, err := newestNow(ctx, r.store)
	if damaged(err) {
		return true, nil
	}
	return now == nil || now.Floor <= n, err
}

// newestNow gives the newest commit as it is now.
func newestNow(ctx context.Context, store vfs.Store) (now *checkpoint.Commit, err error) {
	for range newestTries {
		if now, err = checkpoint.OpenRoot(store).Newest(ctx); !damaged(err) {
			break
		}
	}
	return now, err
}
