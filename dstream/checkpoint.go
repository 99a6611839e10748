package dstream

import (
	"errors"
	"fmt"
	"time"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// Notice is something about a checkpoint that a user should know: see
// Listener.Notice.
type Notice = checkpoint.Notice

// Compression is how state files are compressed.
type Compression = statefile.Compression

// The compressions of state files; see Compress.
const (
	NoCompression = statefile.None
	S2            = statefile.S2
	Zstd          = statefile.Zstd
)

// Takeover says what a start does about another run that holds the checkpoint.
type Takeover = checkpoint.Takeover

// The ways of WithTakeover.
const (
	// TakeoverAuto refuses while another run lives, where the store can tell (a
	// disk); where it cannot (an object store), the start takes over. The default.
	TakeoverAuto = checkpoint.TakeoverAuto
	// TakeoverNever refuses on stores that cannot tell, too.
	TakeoverNever = checkpoint.TakeoverNever
	// TakeoverForce takes over from a run that lives; that one ends before its
	// next commit.
	TakeoverForce = checkpoint.TakeoverForce
)

// checkpointConfig is what options say of durable state.
type checkpointConfig struct {
	at       string // the line of WithCheckpoint, "" if there is none
	call     string
	store    func(run string) (vfs.Store, error)
	host     func() (string, int, error)
	opts     checkpoint.Options
	rescale  bool
	drop     []string
	steps    map[string][]codec.Migration
	stepsAt  map[string]string
	takeover checkpoint.Takeover
	accept   bool
	// Options that mean nothing without a checkpoint, with the lines of their
	// calls.
	needs []*Fault
}

// CheckpointOption sets something of WithCheckpoint.
type CheckpointOption func(*checkpointConfig) error

// WithCheckpoint keeps the job durable in the folder dir, which need not exist:
// state, positions in the sources, and what each epoch reads. A later run with the
// same folder goes on where this one ended, however it ended. Every stateful
// operator needs a name then. One run at a time uses a folder.
func WithCheckpoint(dir string, opts ...CheckpointOption) ContextOption {
	return withCheckpoint("WithCheckpoint", func(c *config) error {
		if dir == "" {
			return errors.New("the checkpoint directory is empty")
		}
		disk := vfs.Disk()
		c.checkpoint.store = func(run string) (vfs.Store, error) { return vfs.NewDir(disk, dir, run) }
		c.checkpoint.host = func() (string, int, error) {
			host, err := disk.Hostname()
			return host, disk.PID(), err
		}
		return nil
	}, opts)
}

// WithCheckpointStore is WithCheckpoint in a store other than a folder of the
// disk: an object store, or one in memory for a test. The store must serve this
// run alone (see vfs.NewDir for its tag).
func WithCheckpointStore(store vfs.Store, opts ...CheckpointOption) ContextOption {
	return withCheckpoint("WithCheckpointStore", func(c *config) error {
		if store == nil {
			return errors.New("the store is nil")
		}
		disk := vfs.Disk()
		c.checkpoint.store = func(string) (vfs.Store, error) { return store, nil }
		c.checkpoint.host = func() (string, int, error) {
			host, err := disk.Hostname()
			return host, disk.PID(), err
		}
		return nil
	}, opts)
}

func withCheckpoint(name string, set func(*config) error, opts []CheckpointOption) ContextOption {
	at := caller()
	return option(name, func(c *config) error {
		if c.checkpoint.at != "" {
			return fmt.Errorf("there is a checkpoint already, set at %s", c.checkpoint.at)
		}
		c.checkpoint.at, c.checkpoint.call = at, "dstream."+name
		faults := []error{set(c)}
		for i, o := range opts {
			if o == nil {
				faults = append(faults, fmt.Errorf("option %d is nil", i))
				continue
			}
			faults = append(faults, o(&c.checkpoint))
		}
		return errors.Join(faults...)
	})
}

// Compress sets the compression of state files. Default NoCompression. Files of
// other compressions in the checkpoint stay readable.
func Compress(c Compression) CheckpointOption {
	return func(k *checkpointConfig) error {
		k.opts.Compression = c
		if c > Zstd {
			return fmt.Errorf("%v is no compression: want NoCompression, S2 or Zstd", c)
		}
		return nil
	}
}

// SnapshotEvery makes a snapshot of a partition due n versions after the last
// one. Default 200, at least 1. A load reads the newest snapshot and the deltas
// after it.
func SnapshotEvery(n int) CheckpointOption {
	return func(k *checkpointConfig) error {
		k.opts.SnapshotVersions = n
		return atLeastOne(n, "the number of versions between snapshots")
	}
}

// SnapshotBySize says whether a snapshot is also due when the deltas since the
// last one are larger than it, and than 4 MiB (a small state is not written again
// and again). Default true.
func SnapshotBySize(on bool) CheckpointOption {
	return func(k *checkpointConfig) error { k.opts.NoSnapshotBySize = !on; return nil }
}

// RetainSnapshots sets how many snapshots of every partition are kept, and so how
// many old versions stay readable. Default 2, at least 1.
func RetainSnapshots(n int) CheckpointOption {
	return func(k *checkpointConfig) error {
		k.opts.MinSnapshotsToRetain = n
		return atLeastOne(n, "the number of snapshots to retain")
	}
}

// MaintenanceInterval sets the time between two looks for snapshots and clean-up
// that no commit has started. Default one minute.
func MaintenanceInterval(d time.Duration) CheckpointOption {
	return func(k *checkpointConfig) error {
		k.opts.MaintenanceInterval = d
		return positive(d, "the maintenance interval")
	}
}

// checkpointOption is option for what means nothing without a checkpoint.
func checkpointOption(call string, set func(*checkpointConfig) error) ContextOption {
	at := caller()
	return option(call, func(c *config) error {
		c.checkpoint.needs = append(c.checkpoint.needs, &Fault{Caller: at, Call: "dstream." + call,
			Err: errors.New("there is no checkpoint: add WithCheckpoint, or leave this out")})
		return set(&c.checkpoint)
	})
}

// WithRescale lets the start change the number of partitions of operators to
// what the program gives. Without it another number than that of the checkpoint
// is refused. It may stay set.
func WithRescale() ContextOption {
	return checkpointOption("WithRescale", func(k *checkpointConfig) error { k.rescale = true; return nil })
}

// WithDrop gives up the state of operators that the program no longer has, the
// position of sources that it no longer has, and exactly-once sinks that it no longer
// has and that may have the planned epoch already (checkpoint.SinksError). It may stay
// set: a name that is in the program is not given up.
func WithDrop(operators ...string) ContextOption {
	return checkpointOption("WithDrop", func(k *checkpointConfig) error {
		for _, name := range operators {
			if name == "" {
				return errors.New("the operator's name is empty")
			}
		}
		k.drop = append(k.drop, operators...)
		return nil
	})
}

// WithMigration gives the way from older state types of an operator to its own:
// steps from codec.Migrate, in any order. Which are needed, the checkpoint tells.
// It may stay set as long as older types may be stored.
func WithMigration(operator string, steps ...codec.Migration) ContextOption {
	at := caller()
	return checkpointOption("WithMigration", func(k *checkpointConfig) error {
		if operator == "" {
			return errors.New("the operator's name is empty")
		}
		if len(steps) == 0 {
			return fmt.Errorf("no step is given for operator %q", operator)
		}
		if k.steps == nil {
			k.steps, k.stepsAt = map[string][]codec.Migration{}, map[string]string{}
		}
		k.stepsAt[operator] = at
		k.steps[operator] = append(k.steps[operator], steps...)
		return nil
	})
}

// WithTakeover says what the start does about another run that holds the
// checkpoint. Default TakeoverAuto.
func WithTakeover(t Takeover) ContextOption {
	return checkpointOption("WithTakeover", func(k *checkpointConfig) error {
		k.takeover = t
		if t < TakeoverAuto || t > TakeoverForce {
			return fmt.Errorf("%d is no way to take over: want TakeoverAuto, TakeoverNever or TakeoverForce", t)
		}
		return nil
	})
}

// WithAcceptDifferentRedo accepts an epoch that was computed again after a crash
// and came out another way than what an exactly-once sink already has: the sink
// keeps what it has, the state is that of the new computation, and a notice says
// so. Without it the run ends with an error for which
// errors.Is(err, checkpoint.ErrRedoDiffers) holds. It accepts, too, that an epoch
// which all exactly-once sinks have is committed without what counters had added in
// it, if the checkpoint has lost that (checkpoint.ErrCorrupt, of a file in counts/).
func WithAcceptDifferentRedo() ContextOption {
	return checkpointOption("WithAcceptDifferentRedo", func(k *checkpointConfig) error { k.accept = true; return nil })
}

// checkpointFaults lists what a checkpoint needs of the graph: names, by which
// state is found again, and types that can be stored.
func (ssc *StreamingContext) checkpointFaults() (faults []*Fault) {
	k := &ssc.cfg.checkpoint
	if k.at == "" {
		return k.needs
	}
	steps := map[string]bool{}
	for _, n := range ssc.nodes {
		if n.op == nil {
			continue
		}
		fault := func(err error) {
			faults = append(faults, &Fault{Caller: n.caller, Call: "dstream." + n.kind, Err: err})
		}
		switch {
		case n.name == "" && n.face != nil:
			if n.suffix != "" { // one fault a window
				fault(errors.New("the window has no name, and a checkpoint is set: give it one by dstream.Name or Named"))
			}
		case n.name == "":
			how := "call Named on its StateSpec"
			switch n.kind {
			case "MapWithState":
			case "Keyed":
				how = "it is an argument"
			default:
				how = "give it one by dstream.Name"
			}
			fault(fmt.Errorf("the stateful operator has no name, and a checkpoint is set: %s", how))
		}
		if err := n.op.storable(); err != nil && (!n.badKey || sabotage.On("fault-told-twice")) {
			fault(err)
		}
		steps[n.name] = true
	}
	for name := range k.steps {
		if !steps[name] {
			faults = append(faults, &Fault{Caller: k.stepsAt[name], Call: "dstream.WithMigration",
				Err: fmt.Errorf("no stateful operator is named %q", name)})
		}
	}
	return faults
}
