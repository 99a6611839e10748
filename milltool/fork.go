package milltool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/statemill/statemill/checkpoint"
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

// forkTries is how often fork begins from the newest version, as other commands that
// read a root whose job deletes old versions meanwhile.
const forkTries = 6

func (c *call) fork(ctx context.Context, at versionFlag) (err error) {
	dir, newDir := c.args[0], c.args[1]
	to, err := c.fresh(newDir, dir)
	if err != nil {
		return err
	}
	// The new root is taken before anything is in it.
	there, err := to.List(ctx, "")
	if err = errors.Join(err, notEmpty(newDir, there)); err != nil {
		return err
	}
	id := c.env.ID()
	from, err := c.existing(dir)
	if err != nil {
		return err
	}
	var lock io.Closer
	defer func() {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	for try := 1; ; try++ {
		f := &forker{c: c, from: from, to: &staging{to: to}, dir: dir, newDir: newDir, id: id}
		err := f.choose(ctx, at)
		if err == nil && lock == nil {
			lock, err = to.Lock(ctx, checkpoint.LockName, "statemill fork "+id)
			if errors.Is(err, errors.ErrUnsupported) {
				lock, err = nil, nil
			}
			if err != nil {
				return fmt.Errorf("take the lock of %s: %w", newDir, err)
			}
		}
		if err == nil {
			err = f.make(ctx)
		}
		if err != nil && f.passed(ctx, err) {
			if cerr := f.to.clear(ctx); cerr != nil {
				return fmt.Errorf("%w; %s is not complete, and no job starts on it: delete it", cerr, newDir)
			}
			if try < forkTries {
				continue
			}
			err = &busyError{dir: dir, newDir: newDir, tries: try, last: err}
		}
		f.tell()
		if err != nil {
			return err
		}
		return c.forked(f)
	}
}

// forked prints what was made.
func (c *call) forked(f *forker) error {
	r := forkResult{From: f.dir, To: f.newDir, Root: f.id, Version: f.at, Oldest: f.floor, Files: f.files, Bytes: f.bytes, Sinks: f.sinks}
	if c.json {
		return c.printJSON(r)
	}
	c.printf("%s: a new root with id %s, versions %d to %d, %s (%s) of state\n", r.To, r.Root, r.Oldest, r.Version, counted(r.Files, "file", "files"), sizeText(r.Bytes))
	c.printf("a job that starts on it goes on with epoch %d\n", r.Version+1)
	for _, s := range r.Sinks {
		c.printf("sink %s knows nothing of the new root: what the fork writes comes beside what %s has written after version %d\n", word(s), r.From, r.Version)
	}
	return nil
}

// notEmpty refuses a folder with files. The file of a lock, which is never removed, may
// be there from an earlier try.
func notEmpty(dir string, there []vfs.Object) error {
	for _, o := range there {
		if o.Name != checkpoint.LockName {
			return fmt.Errorf("%s is not empty: it has %s: give a new folder", dir, clean(o.Name))
		}
	}
	return nil
}
