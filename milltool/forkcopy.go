package milltool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// forker copies a root. The order of what it writes is such that, wherever it
// breaks off, a job cannot start on the new root: the metadata in force comes
// last, and before it there is a commit that names it.
type forker struct {
	c               *call
	from            vfs.Store
	to              *staging
	dir, newDir, id string
	root            *checkpoint.Root
	at              uint64 // the last version
	first           uint64 // the oldest one as it was when the copying began; 0: it has not
	floor           uint64 // the oldest one
	damage          error  // the newest version is not known for it
	sinks           []string
	files           int
	bytes           int64
	view            *view
	notes           []string

	snapshots map[partVersion][]string
}

// choose finds the version to end with. It reads all commits that are to be copied,
// so that a root with a damaged or missing one is refused before anything is written.
func (f *forker) choose(ctx context.Context, at versionFlag) error {
	f.root = checkpoint.OpenRoot(f.from)
	err := f.root.ReadPast(ctx, func(newest *checkpoint.Commit, damage error) error {
		v := &view{dir: f.dir, root: f.root, newest: newest, damage: damage, seen: map[string]bool{}}
		f.view = v
		if err := v.isRoot(ctx); err != nil {
			return err
		}
		commit, err := v.at(ctx, at)
		if err != nil {
			return err
		}
		f.at, f.damage, f.sinks = commit.Epoch, damage, []string{}
		for _, s := range commit.Sinks {
			f.sinks = append(f.sinks, s.Name)
		}
		if f.floor, err = v.oldest(ctx); err != nil {
			return err
		}
		for older := f.floor; older < f.at; older++ {
			_, err := f.root.Commit(ctx, older)
			if damage != nil && errors.Is(err, fs.ErrNotExist) {
				return &checkpoint.GapError{Missing: older, Floor: f.floor, Newest: f.at}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		f.first = f.floor
	}
	return err
}

// make makes the new root and checks it.
func (f *forker) make(ctx context.Context) error {
	err := f.copy(ctx)
	if err == nil {
		err = f.to.flush(ctx)
	}
	if err != nil && f.to.written {
		return fmt.Errorf("%w; %s is not complete, and no job starts on it: delete it", err, f.newDir)
	}
	if err != nil {
		return err
	}
	if err := f.check(ctx); err != nil {
		return fmt.Errorf("%w; delete %s", err, f.newDir)
	}
	return nil
}

// errCopy says that the new root is not whole: the old one is damaged, or it was
// changed under the copying.
var errCopy = errors.New("the copy is damaged")

// passed reports whether an error of make is that of a clean-up which has gone past
// what was being copied.
func (f *forker) passed(ctx context.Context, err error) bool {
	if f.first == 0 || f.damage != nil || !damaged(err) && !errors.Is(err, errCopy) && !errors.Is(err, errPassed) || sabotage.On("fork-tries-once") {
		return false
	}
	now, nerr := newestNow(ctx, f.from)
	return nerr == nil && now != nil && now.Floor > f.first
}

// busyError says that a job was always faster than the copying.
type busyError struct {
	dir, newDir string
	tries       int
	last        error
}

// Error says what to do. (The last try's error is not wrapped: what would help
// against it does not help here.)
func (e *busyError) Error() string {
	return fmt.Sprintf("the job of %s deletes versions faster than they can be copied: %d tries, the last: %v; "+
		"%s is left empty: let the job keep more snapshots, or fork while it is stopped", e.dir, e.tries, e.last, e.newDir)
}

// note keeps what is to be told of this try, if it is the last.
func (f *forker) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// tell tells what this try noticed.
func (f *forker) tell() {
	f.c.told(f.view)
	for _, n := range f.notes {
		f.c.note("%s", n)
	}
}

// copy copies everything. Files that a running job deletes meanwhile are of
// versions that its newest commit keeps no more: the fork keeps fewer then.
func (f *forker) copy(ctx context.Context) error {
	if err := f.list(ctx); err != nil {
		return err
	}
	first := f.floor
	for n := f.floor; n < f.at; n++ {
		if err := f.passing(ctx, n, f.commit(ctx, n, 0)); err != nil {
			return err
		}
	}
	if first == f.at { // there is no older commit to stand in the way of a start
		if err := f.commit(ctx, f.at, f.floor); err != nil {
			return err
		}
	}
	metas := map[uint64]bool{1: true}
	for n := first; n <= f.at; n++ {
		if n < f.floor {
			continue
		}
		seq, err := f.version(ctx, n)
		if err := f.passing(ctx, n, err); err != nil {
			return err
		}
		if err == nil {
			metas[seq] = true
		}
	}
	if err := f.owners(ctx); err != nil {
		return err
	}
	if first != f.at {
		if err := f.commit(ctx, f.at, f.floor); err != nil {
			return err
		}
	}
	commit, err := f.root.Commit(ctx, f.at)
	if err != nil {
		return err
	}
	delete(metas, commit.Metadata)
	for seq := range metas {
		if err := f.metadata(ctx, seq); err != nil {
			return err
		}
	}
	return f.metadata(ctx, commit.Metadata)
}

// list lists the snapshots of the old root.
func (f *forker) list(ctx context.Context) error {
	list, err := f.from.List(ctx, "state/")
	f.snapshots = snapshotsIn(list)
	return err
}

// errPassed says that the version to end with is no longer kept.
var errPassed = errors.New("no longer kept")

// passing lets go what is gone because the source no longer keeps version n. What
// follows may begin with a snapshot that was not there before.
func (f *forker) passing(ctx context.Context, n uint64, err error) error {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, checkpoint.ErrNoStart) {
		return err
	}
	now, nerr := newestNow(ctx, f.from)
	switch {
	case f.damage != nil && n < f.at:
		// The commit that cannot be read may have let it go.
		f.note("version %d is left out: %v", n, err)
		f.floor = n + 1
		return nil
	case f.damage != nil:
		return err
	case nerr != nil:
		return nerr
	case now == nil || now.Floor <= n:
		return err
	case now.Floor > f.at:
		return fmt.Errorf("version %d is %w in %s: its job went on to %d meanwhile", f.at, errPassed, f.dir, now.Epoch)
	}
	f.floor = now.Floor
	return f.list(ctx)
}

// commit writes the commit of a version as the new root has it: without the
// memories of sinks, which are of the old root's id.
func (f *forker) commit(ctx context.Context, n, floor uint64) error {
	commit, err := f.root.Commit(ctx, n)
	if err != nil {
		return err
	}
	own := *commit
	if !sabotage.On("fork-keeps-sinks") {
		own.Sinks = nil
	}
	if floor > own.Floor {
		own.Floor = floor
	}
	return f.document(ctx, checkpoint.CommitName(n), &own)
}

func (f *forker) metadata(ctx context.Context, seq uint64) error {
	meta, err := f.root.Metadata(ctx, seq)
	if err != nil {
		return err
	}
	own := *meta
	if !sabotage.On("fork-keeps-id") {
		own.Root = f.id
	}
	return f.document(ctx, checkpoint.MetadataName(seq), &own)
}

func (f *forker) document(ctx context.Context, name string, doc any) error {
	b, err := checkpoint.EncodeDocument(doc)
	if err != nil {
		return err
	}
	return f.put(ctx, name, b)
}

func (f *forker) put(ctx context.Context, name string, b []byte) error {
	return f.to.put(ctx, name, int64(len(b)), func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// owners copies the owners, so that terms go on, and adds this fork as the
// newest.
func (f *forker) owners(ctx context.Context) error {
	list, err := f.from.List(ctx, "owner/")
	if err != nil {
		return err
	}
	last := uint64(0)
	for _, o := range list {
		n, ok := documentNumber(o.Name)
		if !ok {
			continue
		}
		b, err := f.from.Get(ctx, o.Name)
		if err != nil {
			return err
		}
		if _, err := checkpoint.DecodeDocument(o.Name, b); err != nil {
			return err
		}
		if err := f.put(ctx, o.Name, b); err != nil {
			return err
		}
		last = max(last, n)
	}
	host, err := f.c.env.FS.Hostname()
	if err != nil {
		return err
	}
	return f.document(ctx, checkpoint.OwnerName(last+1), &checkpoint.Owner{
		Term: last + 1, Run: "statemill-fork-" + f.id, Host: host, PID: f.c.env.FS.PID(), Since: f.c.env.Now()})
}

// version copies plan and state files of a version and gives the number of its
// metadata.
func (f *forker) version(ctx context.Context, n uint64) (seq uint64, err error) {
	commit, err := f.root.Commit(ctx, n)
	if err != nil {
		return 0, err
	}
	plan, err := f.root.Plan(ctx, n)
	if err != nil {
		return 0, err
	}
	meta, err := f.root.Metadata(ctx, commit.Metadata)
	if err != nil {
		return 0, err
	}
	if err := f.document(ctx, checkpoint.PlanName(n), plan); err != nil {
		return 0, err
	}
	for i := range meta.Operators {
		op := &meta.Operators[i]
		if err := fits(commit, op); err != nil {
			return 0, err
		}
		for part := range op.Partitions {
			if err := f.partition(ctx, commit, op, part); err != nil {
				return 0, err
			}
		}
	}
	return commit.Metadata, nil
}

// partition copies the files of a version of a partition.
func (f *forker) partition(ctx context.Context, commit *checkpoint.Commit, op *checkpoint.Operator, part int) error {
	c := &commit.Operator(op.Number).Partitions[part]
	if c.File != "" {
		file := stateFile(commit, op, part)
		if err := f.state(ctx, &file); err != nil {
			return err
		}
	}
	for _, name := range f.snapshots[partVersion{op.Number, op.Layout, part, commit.Epoch}] {
		file := checkpoint.File{Name: name, Version: commit.Epoch, Kind: statefile.Snapshot, Chain: c.Chain}
		err := eachRow(ctx, f.from, op, part, &file, func(*statefile.Block, int) {})
		if damaged(err) && !errors.Is(err, fs.ErrNotExist) {
			f.note("%s is left out: it is damaged, or not of this line of versions", name)
			continue
		}
		if err != nil {
			return err
		}
		if err := f.state(ctx, &file); err != nil {
			return err
		}
	}
	return nil
}

// state copies a state file.
func (f *forker) state(ctx context.Context, file *checkpoint.File) error {
	o, err := f.from.Stat(ctx, file.Name)
	if err != nil {
		return err
	}
	err = f.to.put(ctx, file.Name, o.Size, func(w io.Writer) error {
		_, err := io.Copy(w, checkpoint.OpenFile(ctx, f.from, file.Name, o.Size))
		return err
	})
	if err != nil {
		return err
	}
	f.files++
	f.bytes += o.Size
	return nil
}

// check verifies the new root.
func (f *forker) check(ctx context.Context) error {
	r := newVerifier(f.to.to)
	if err := r.run(ctx, f.newDir); err != nil {
		return err
	}
	for _, d := range r.findings {
		if d.Level == damage {
			return fmt.Errorf("%w: %s: %s", errCopy, d.File, d.Text)
		}
	}
	return nil
}
