package milltool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// ownFlags are the flags of commands that become the owner of a root.
type ownFlags struct {
	takeover    bool
	compression statefile.Compression
}

func (f *ownFlags) bind(flags *flag.FlagSet) {
	flags.BoolVar(&f.takeover, "takeover", false, "take the root from a run that holds it; needed too where the store has no locks and nobody can tell\nwhether a run lives: that run ends before its next commit")
	flags.Func("compression", "compress the state files that are written: `C` is none, s2 or zstd; default none.\nWhoever reads them needs not be told", func(s string) (err error) {
		f.compression, err = statefile.ParseCompression(s)
		return err
	})
}

// own makes this process the owner of a root, as a run of a job that has the
// operators of the newest version, after change was made to them. A pending
// change of an earlier run is finished on the way; a pending batch is refused,
// as only the job can compute it.
func (c *call) own(ctx context.Context, store vfs.Store, f ownFlags, dir string, rescale bool, change func(*checkpoint.Metadata, []checkpoint.JobOperator) error) (*checkpoint.Session, error) {
	root := checkpoint.OpenRoot(store)
	var cfg checkpoint.Config
	err := root.Read(ctx, func(newest *checkpoint.Commit) error {
		if newest == nil {
			v := view{dir: dir, root: root}
			if err := v.isRoot(ctx); err != nil {
				return err
			}
			return fmt.Errorf("no version is committed in %s yet: there is nothing to change", dir)
		}
		plan, err := root.Plan(ctx, newest.Epoch+1)
		switch {
		case err == nil && plan.Kind == checkpoint.KindBatch && !sabotage.On("rescale-over-pending"):
			return &pendingError{dir, plan.Epoch}
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
		seq := newest.Metadata
		if err == nil {
			seq = plan.Metadata // of a change that is to be finished first
		}
		meta, err := root.Metadata(ctx, seq)
		if err != nil {
			return err
		}
		cfg, err = c.config(store, f, meta)
		if err != nil {
			return err
		}
		cfg.Rescale = rescale
		return change(meta, cfg.Operators)
	})
	if err != nil {
		return nil, err
	}
	return checkpoint.Open(ctx, cfg)
}

// config is that of a job with the operators of a metadata document.
func (c *call) config(store vfs.Store, f ownFlags, meta *checkpoint.Metadata) (checkpoint.Config, error) {
	host, err := c.env.FS.Hostname()
	if err != nil {
		return checkpoint.Config{}, fmt.Errorf("the name of this host: %w", err)
	}
	cfg := checkpoint.Config{
		Store: store, Run: "statemill-" + c.name + "-" + c.env.ID(), Host: host, PID: c.env.FS.PID(),
		Now: c.env.Now, Wait: c.env.Wait, Interval: meta.Interval, Zero: meta.Zero,
		Takeover: checkpoint.TakeoverNever,
		Notice:   func(n checkpoint.Notice) { c.note("%s", n.Text) },
	}
	cfg.Options.Compression = f.compression
	if f.takeover {
		cfg.Takeover = checkpoint.TakeoverForce
	}
	for _, op := range meta.Operators {
		cfg.Operators = append(cfg.Operators, checkpoint.JobOperator{Operator: op, PartitionsGiven: true})
	}
	return cfg, nil
}

// pendingError says that an epoch must be finished by the job first.
type pendingError struct {
	dir   string
	epoch uint64
}

// Error says what to do.
func (e *pendingError) Error() string {
	return fmt.Sprintf("epoch %d is planned in %s and not committed, and only the job can compute it: stop the job if it runs, else start it once and stop it, and try again", e.epoch, e.dir)
}
