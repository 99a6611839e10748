package milltool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
)

// repairStep is a line of repair -json.
type repairStep struct {
	// Action is "snapshot" for a file that is, or would be, written,
	// "superseded" for damage that does no harm any more, and "none" for damage
	// that this tool cannot undo.
	Action string `json:"action"`
	// Damaged is the file that is damaged, Text why.
	Damaged string `json:"damaged"`
	Text    string `json:"text"`
	// Operator, Partition and Version say of what a snapshot is, File its name
	// once it is written.
	Operator  string `json:"operator,omitempty"`
	Partition int    `json:"partition"`
	Version   uint64 `json:"version,omitempty"`
	File      string `json:"file,omitempty"`
	// Written says that it was done; without -write nothing is.
	Written bool `json:"written"`

	op *checkpoint.Operator
}

func repairCommand() command {
	return command{
		name: "repair", args: []string{"DIR"},
		short: "write snapshots anew where they are damaged",
		long: `Checks everything as verify does and repairs what can be repaired: a partition whose newest snapshot is damaged gets a new
one, of the newest version, from an older snapshot and the deltas. Nothing is replaced or deleted; the damaged file is passed
over and goes when its version is no longer kept. Without -write it only tells what it would do.
Damaged deltas and documents cannot be repaired: they come back only from a copy of the root.
The exit code is 0 if no damage is left, else 1. The job must be stopped for -write.`,
		json: "one line a damaged file",
		bind: func(c *call, flags *flag.FlagSet) func(context.Context) error {
			var write bool
			var own ownFlags
			own.bind(flags)
			flags.BoolVar(&write, "write", false, "write the snapshots; without it nothing is written")
			return func(ctx context.Context) error { return c.repair(ctx, write, own) }
		},
	}
}

func (c *call) repair(ctx context.Context, write bool, own ownFlags) error {
	store, err := c.existing(c.args[0])
	if err != nil {
		return err
	}
	r := newVerifier(store)
	if err := r.run(ctx, c.args[0]); err != nil {
		return err
	}
	steps, err := r.repairs(ctx)
	if err != nil {
		return err
	}
	todo, left := 0, 0
	for i := range steps {
		if steps[i].Action == "snapshot" {
			todo++
		} else if steps[i].Action == "none" {
			left++
		}
	}
	if write && todo > 0 {
		if err := c.writeSnapshots(ctx, r, steps, own); err != nil {
			return err
		}
		todo = 0
	}
	if err := c.printRepairs(steps, todo); err != nil {
		return err
	}
	if todo+left > 0 {
		return errFound
	}
	return nil
}

// printRepairs prints what was done, and what is left to do.
func (c *call) printRepairs(steps []repairStep, todo int) error {
	if c.json {
		return printEach(c, steps)
	}
	for _, s := range steps {
		switch {
		case s.Action == "none":
			c.printf("cannot be repaired: %s: %s\n", clean(s.Damaged), clean(s.Text))
		case s.Action == "superseded":
			c.printf("needs no repair: %s: %s\n", clean(s.Damaged), clean(s.Text))
		case s.Written:
			c.printf("wrote %s: %s is damaged\n", s.File, s.Damaged)
		default:
			c.printf("would write a snapshot of version %d of operator %s, partition %d: %s is damaged\n", s.Version, word(s.Operator), s.Partition, s.Damaged)
		}
	}
	switch {
	case len(steps) == 0:
		c.printf("nothing to repair\n")
	case todo > 0:
		c.printf("nothing was written; -write does it\n")
	}
	return nil
}

// repairs says what can be done about each finding of damage.
func (r *verifier) repairs(ctx context.Context) ([]repairStep, error) {
	var steps []repairStep
	done := map[partVersion]bool{}
	for _, f := range r.findings {
		if f.Level != damage {
			continue
		}
		s := repairStep{Action: "none", Damaged: f.File, Text: f.Text}
		n, ok := checkpoint.ParseStateName(f.File)
		if ok && n.Kind == statefile.Snapshot && r.newest > 0 && !r.unread {
			if err := r.plan(ctx, n, &s); err != nil {
				return nil, err
			}
		}
		at := partVersion{n.Number, n.Layout, n.Part, 0}
		if s.Action == "snapshot" && done[at] {
			s.Action, s.Text = "superseded", "the new snapshot of its partition makes up for it"
		}
		done[at] = done[at] || s.Action == "snapshot"
		steps = append(steps, s)
	}
	return steps, nil
}

// plan finds out whether a new snapshot makes up for a bad one.
func (r *verifier) plan(ctx context.Context, bad checkpoint.StateName, s *repairStep) error {
	commit, err := r.root.Commit(ctx, r.newest)
	if err != nil {
		return skip(err)
	}
	meta, err := r.root.Metadata(ctx, commit.Metadata)
	if err != nil {
		return skip(err)
	}
	for i := range meta.Operators {
		op := &meta.Operators[i]
		if op.Number != bad.Number || op.Layout != bad.Layout || fits(commit, op) != nil || bad.Part >= op.Partitions {
			continue
		}
		// What the newest version starts from, if it is younger than the bad one,
		// makes up for it already.
		var notices int
		err := checkpoint.ReadRows(ctx, r.root, op.Number, bad.Part, r.newest, func(checkpoint.Notice) { notices++ }, func(checkpoint.Row) error { return nil })
		switch {
		case damaged(err):
			s.Text += "; and the deltas do not give the newest version either"
			return nil
		case err != nil:
			return err
		case notices == 0:
			s.Action, s.Text = "superseded", "newer versions do not need it"
			return nil
		}
		s.Action, s.Operator, s.Partition, s.Version, s.op = "snapshot", op.Name, bad.Part, r.newest, op
		return nil
	}
	s.Text += "; it is of an operator or layout that the newest version does not have"
	return nil
}

// skip passes errors other than damage, which has its finding.
func skip(err error) error {
	if damaged(err) {
		return nil
	}
	return err
}

// writeSnapshots does what was planned, as the owner of the root.
func (c *call) writeSnapshots(ctx context.Context, r *verifier, steps []repairStep, own ownFlags) (err error) {
	session, err := c.own(ctx, r.store, own, c.args[0], false, func(*checkpoint.Metadata, []checkpoint.JobOperator) error { return nil })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	if now := session.Start().Commit; now.Epoch != r.newest {
		return fmt.Errorf("the root went on to version %d meanwhile: try again", now.Epoch)
	}
	for i := range steps {
		if steps[i].Action != "snapshot" {
			continue
		}
		if err := writeSnapshot(ctx, session, &steps[i], own.compression); err != nil {
			return err
		}
	}
	return nil
}

// writeSnapshot writes a snapshot of the newest version of a partition.
func writeSnapshot(ctx context.Context, session *checkpoint.Session, s *repairStep, how statefile.Compression) error {
	commit := session.Start().Commit
	var rows []checkpoint.Row
	err := checkpoint.ReadRows(ctx, session.Root(), s.op.Number, s.Partition, commit.Epoch, nil, func(r checkpoint.Row) error {
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		return err
	}
	name := checkpoint.StateName{Number: s.op.Number, Layout: s.op.Layout, Part: s.Partition, Version: commit.Epoch, Term: session.Term(), Kind: statefile.Snapshot}
	info := statefile.Info{Kind: statefile.Snapshot, Compression: how, Operator: s.op.Name, Partition: s.Partition, Version: int64(commit.Epoch), BatchTime: commit.Time,
		Deadlines: s.op.Deadlines, KeyCodec: s.op.KeyCodec, StateCodec: s.op.StateCodec, Chain: commit.Operator(s.op.Number).Partitions[s.Partition].Chain}
	var enc statefile.RawEncoder
	err = session.Put(ctx, name.String(), func(w io.Writer) error {
		if err := enc.Begin(w, info); err != nil {
			return err
		}
		for _, r := range rows {
			if err := enc.Put(r.Key, r.State, r.Time); err != nil {
				return err
			}
		}
		_, err := enc.End()
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	s.File, s.Written = name.String(), true
	return nil
}
