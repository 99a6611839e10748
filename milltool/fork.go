package milltool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// forkResult is the document of fork -json.
type forkResult struct {
	// From and To are the two folders, Root is the new root's id.
	From string `json:"from"`
	To   string `json:"to"`
	Root string `json:"root"`
	// Version is the newest version of the fork, Oldest the oldest it keeps.
	Version uint64 `json:"version"`
	Oldest  uint64 `json:"oldest"`
	// Files and Bytes are what was copied of state.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	// Sinks are the exactly-once sinks of the old root: they know nothing of
	// the new one.
	Sinks []string `json:"sinks"`
}

func forkCommand() command {
	return command{
		name: "fork", args: []string{"DIR", "NEWDIR"},
		short: "copy a root up to a version into a new one that goes on by itself",
		long: `Makes a root in NEWDIR, which must be empty, with a new id and all versions of DIR up to the newest or the one given.
A job started on it goes on with the epoch after that version, from its positions; versions, terms and file names go on too.
The new root is verified at the end. DIR is only read and may belong to a running job.
Exactly-once sinks know a root by its id: to them the fork is new, so what it writes again of epochs that DIR has written
already appears twice, if both write to the same place. Until fork has ended, no job can start on NEWDIR.`,
		json: "one document",
		bind: func(c *call, flags *flag.FlagSet) func(context.Context) error {
			var at versionFlag
			flags.Var(&at, "version", "end with version `N`, not with the newest")
			return func(ctx context.Context) error { return c.fork(ctx, at) }
		},
	}
}

func (c *call) fork(ctx context.Context, at versionFlag) (err error) {
	dir, newDir := c.args[0], c.args[1]
	to, err := c.fresh(newDir, dir)
	if err != nil {
		return err
	}
	f := &forker{c: c, to: to, dir: dir, id: c.env.ID()}
	// The new root is taken before anything is in it.
	if there, err := to.List(ctx, ""); err != nil || len(there) > 0 {
		return errors.Join(err, notEmpty(newDir, there))
	}
	if f.from, err = c.existing(dir); err != nil {
		return err
	}
	if f.at, err = f.choose(ctx, at); err != nil {
		return err
	}
	lock, err := to.Lock(ctx, checkpoint.LockName, "statemill fork "+f.id)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("take the lock of %s: %w", newDir, err)
	}
	if lock != nil {
		defer func() { err = errors.Join(err, lock.Close()) }()
	}
	if err := f.copy(ctx); err != nil {
		return fmt.Errorf("%w; %s is not complete, and no job starts on it: delete it", err, newDir)
	}
	if err := f.check(ctx, newDir); err != nil {
		return fmt.Errorf("%w; delete %s", err, newDir)
	}
	r := forkResult{From: dir, To: newDir, Root: f.id, Version: f.at, Oldest: f.floor, Files: f.files, Bytes: f.bytes, Sinks: f.sinks}
	if c.json {
		return c.printJSON(r)
	}
	c.printf("%s: a new root with id %s, versions %d to %d, %s (%s) of state\n", newDir, r.Root, r.Oldest, r.Version, counted(r.Files, "file", "files"), sizeText(r.Bytes))
	c.printf("a job that starts on it goes on with epoch %d\n", r.Version+1)
	for _, s := range r.Sinks {
		c.printf("sink %s knows nothing of the new root: what the fork writes comes beside what %s has written after version %d\n", word(s), dir, r.Version)
	}
	return nil
}

func notEmpty(dir string, there []vfs.Object) error {
	if len(there) == 0 {
		return nil
	}
	return fmt.Errorf("%s is not empty: it has %s: give a new folder", dir, clean(there[0].Name))
}

// forker copies a root. The order of what it writes is such that, wherever it
// breaks off, a job cannot start on the new root: the metadata in force comes
// last, and before it there is a commit that names it.
type forker struct {
	c        *call
	from, to vfs.Store
	dir, id  string
	root     *checkpoint.Root
	at       uint64 // the last version
	floor    uint64 // the oldest one
	damage   error  // the newest version is not known for it
	sinks    []string
	files    int
	bytes    int64

	snapshots map[partVersion][]string
}

// choose finds the version to end with. It reads all commits that are to be copied,
// so that a root with a damaged or missing one is refused before anything is written.
func (f *forker) choose(ctx context.Context, at versionFlag) (n uint64, err error) {
	f.root = checkpoint.OpenRoot(f.from)
	var v *view
	err = f.root.ReadPast(ctx, func(newest *checkpoint.Commit, damage error) error {
		v = &view{dir: f.dir, root: f.root, newest: newest, damage: damage, seen: map[string]bool{}}
		if err := v.isRoot(ctx); err != nil {
			return err
		}
		commit, err := v.at(ctx, at)
		if err != nil {
			return err
		}
		n, f.damage, f.sinks = commit.Epoch, damage, []string{}
		for _, s := range commit.Sinks {
			f.sinks = append(f.sinks, s.Name)
		}
		if f.floor, err = v.oldest(ctx); err != nil {
			return err
		}
		for older := f.floor; older < n; older++ {
			_, err := f.root.Commit(ctx, older)
			if damage != nil && errors.Is(err, fs.ErrNotExist) {
				return &checkpoint.GapError{Missing: older, Floor: f.floor, Newest: n}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	f.c.told(v)
	return n, err
}

// copy copies everything. Files that a running job deletes meanwhile are of
// versions that its newest commit keeps no more: the fork keeps fewer then.
func (f *forker) copy(ctx context.Context) error {
	list, err := f.from.List(ctx, "state/")
	if err != nil {
		return err
	}
	f.snapshots = snapshotsIn(list)
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

// passing lets go what is gone because the source no longer keeps version n.
func (f *forker) passing(ctx context.Context, n uint64, err error) error {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, checkpoint.ErrNoStart) {
		return err
	}
	now, nerr := checkpoint.OpenRoot(f.from).Newest(ctx)
	switch {
	case f.damage != nil && n < f.at:
		// The commit that cannot be read may have let it go.
		f.c.note("version %d is left out: %v", n, err)
		f.floor = n + 1
		return nil
	case f.damage != nil:
		return err
	case nerr != nil:
		return nerr
	case now == nil || now.Floor <= n:
		return err
	case now.Floor > f.at:
		return fmt.Errorf("version %d is no longer kept in %s: its job went on to %d meanwhile", f.at, f.dir, now.Epoch)
	}
	f.floor = now.Floor
	return nil
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
	return f.to.PutIfAbsent(ctx, name, func(w io.Writer) error {
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
		if damaged(err) {
			f.c.note("%s is left out: it is damaged, not of this line of versions, or gone", name)
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
	err = f.to.PutIfAbsent(ctx, file.Name, func(w io.Writer) error {
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
func (f *forker) check(ctx context.Context, dir string) error {
	r := newVerifier(f.to)
	if err := r.run(ctx, dir); err != nil {
		return err
	}
	for _, d := range r.findings {
		if d.Level == damage {
			return fmt.Errorf("the copy is damaged: %s: %s", d.File, d.Text)
		}
	}
	return nil
}
