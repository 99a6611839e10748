package milltool

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"time"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

// Replay is what a ReplayFunc runs on.
type Replay struct {
	// Store is a root whose newest version is the one before the epoch, which is
	// planned. Committing the epoch fails, and ends the job.
	Store vfs.Store
	// Interval is the job's batch interval.
	Interval time.Duration
	// Output takes the rows of an output, a []T, in the place of the output. It
	// is called from any goroutine, again if an attempt is repeated.
	Output func(name, kind string, rows any)
}

// ReplayFunc runs a job on a root until it ends. See [ReplayJob].
type ReplayFunc func(ctx context.Context, r Replay) error

// replayResult is the document of replay -json.
type replayResult struct {
	// Version is the epoch, Time its batch time.
	Version uint64 `json:"version"`
	Time    string `json:"time"`
	// Same says that all operators came out as they were committed.
	Same bool `json:"same"`
	// Outputs are the job's outputs in the order of their names.
	Outputs []replayOutput `json:"outputs"`
	// Operators are the operators of the committed version.
	Operators []replayOperator `json:"operators"`
}

type replayOutput struct {
	// Name is the output's name or that of its stream, Kind what it is.
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Total is the number of its rows, Rows the first of them.
	Total int               `json:"total"`
	Rows  []json.RawMessage `json:"rows"`
}

type replayOperator struct {
	Name string `json:"name"`
	// Same says that the chain hash of every partition is the committed one.
	Same bool `json:"same"`
	// Differences are the first keys that differ, from what was committed to
	// what came out. There may be none: then the same came out in another order.
	Differences []diffRow `json:"differences"`
	// Text says what differs besides.
	Text string `json:"text,omitempty"`
}

func replayCommand() command {
	return command{
		name: "replay", args: []string{"DIR", "N"},
		short: "compute an epoch again with this program's job, and compare",
		long: `Computes epoch N again from its plan and version N-1, with the functions that this program has, and compares what comes
out with what was committed. Nothing is written: outputs are printed here and in no other place, sinks are not opened, and the
root is only read. The sources must still have the records. Functions that depend on more than their arguments (a clock, a
random number) may come out another way. A difference is exit code 1. Operators must have the number of partitions that they
had in version N-1.`,
		json: "one document",
		bind: func(c *call, flags *flag.FlagSet) func(context.Context) error {
			limit := flags.Int("limit", 10, "print at most `n` rows of each output and keys of each operator; 0 prints all")
			return func(ctx context.Context) error {
				n, err := parseVersion(c.args[1])
				if err != nil {
					return err
				}
				if *limit < 0 {
					return usagef("-limit %d: want 0 (all) or more", *limit)
				}
				return c.replay(ctx, n, *limit)
			}
		},
	}
}

func (c *call) replay(ctx context.Context, n uint64, limit int) error {
	dir := c.args[0]
	base, err := c.existing(dir)
	if err != nil {
		return err
	}
	root := checkpoint.OpenRoot(base)
	var o *overlay
	var committed *checkpoint.Commit
	var meta *checkpoint.Metadata
	var v *view
	err = root.ReadPast(ctx, func(newest *checkpoint.Commit, damage error) error {
		v = &view{dir: dir, root: root, newest: newest, damage: damage, seen: map[string]bool{}}
		if err := v.isRoot(ctx); err != nil {
			return err
		}
		if committed, err = v.at(ctx, versionFlag{true, n}); err != nil {
			return err
		}
		if committed.Kind != checkpoint.KindBatch {
			return fmt.Errorf("epoch %d is a change, which no job computes: replay a batch", n)
		}
		if meta, err = root.Metadata(ctx, committed.Metadata); err != nil {
			return err
		}
		var before *checkpoint.Commit
		if n > 1 {
			if before, err = v.at(ctx, versionFlag{true, n - 1}); err != nil {
				return fmt.Errorf("epoch %d begins from version %d: %w", n, n-1, err)
			}
		}
		o, err = newOverlay(base, n, newest.Floor, before)
		return err
	})
	c.told(v)
	if err != nil {
		return err
	}
	outputs := newOutputs(limit)
	err = c.env.Replay(ctx, Replay{Store: o, Interval: time.Duration(meta.Interval), Output: outputs.take})
	if o.commit == nil {
		return &replayError{dir, n, err}
	}
	r := replayResult{Version: n, Time: stamp(committed.Time), Same: true}
	if r.Outputs, err = outputs.list(); err != nil {
		return err
	}
	for i := range meta.Operators {
		op, err := compareReplay(ctx, root, o, committed, &meta.Operators[i], limit)
		if err != nil {
			return err
		}
		r.Same = r.Same && op.Same
		r.Operators = append(r.Operators, op)
	}
	if err := c.printReplay(&r); err != nil {
		return err
	}
	if !r.Same {
		return errFound
	}
	return nil
}

// replayError says that an epoch was not computed again.
type replayError struct {
	dir   string
	epoch uint64
	err   error
}

// Error names the epoch and what the job met.
func (e *replayError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("epoch %d did not come out", e.epoch)
	}
	return fmt.Sprintf("epoch %d did not come out\n%v", e.epoch, e.err)
}

// Unwrap gives what the job met.
func (e *replayError) Unwrap() error { return e.err }

// input names the file of a source that is not there; "", if it is none of a source.
func (e *replayError) input() string {
	var at *fs.PathError
	if !errors.As(e.err, &at) || !errors.Is(at.Err, fs.ErrNotExist) || within(at.Path, e.dir) {
		return ""
	}
	if _, ok := documentNumber(at.Path); ok {
		return ""
	}
	if _, ok := checkpoint.ParseStateName(at.Path); ok {
		return ""
	}
	return at.Path
}

// compareReplay holds an operator of the committed version against what came
// out.
func compareReplay(ctx context.Context, root *checkpoint.Root, o *overlay, committed *checkpoint.Commit, op *checkpoint.Operator, limit int) (replayOperator, error) {
	r := replayOperator{Name: op.Name, Differences: []diffRow{}}
	if err := fits(committed, op); err != nil {
		return r, err
	}
	again := o.replayed()
	meta, err := again.Metadata(ctx, o.commit.Metadata)
	if err != nil {
		return r, err
	}
	now := meta.Operator(op.Name)
	if now == nil || now.Partitions != op.Partitions || fits(o.commit, now) != nil {
		r.Text = "this program has no such operator, or with another number of partitions"
		return r, nil
	}
	was, is := committed.Operator(op.Number), o.commit.Operator(now.Number)
	r.Same = true
	for part := range op.Partitions {
		if was.Partitions[part].Chain == is.Partitions[part].Chain {
			continue
		}
		r.Same = false
		sides := []*side{{op: op}, {op: now}}
		for i, from := range []*checkpoint.Root{root, again} {
			v := &view{root: from, seen: map[string]bool{}}
			list, err := v.entries(ctx, sides[i].op, part, committed.Epoch)
			if err != nil {
				return r, err
			}
			sides[i].keys = map[string]*entry{}
			for j := range list {
				sides[i].keys[list[j].key] = &list[j]
			}
		}
		rows, err := compare(sides[0], sides[1], true)
		if err != nil {
			return r, err
		}
		r.Differences = append(r.Differences, rows...)
	}
	switch {
	case r.Same:
	case len(r.Differences) == 0:
		r.Text = "the same states came out in another order, or by another way"
	case limit > 0 && len(r.Differences) > limit:
		r.Text = fmt.Sprintf("%d keys differ", len(r.Differences))
		r.Differences = slices.Clip(r.Differences[:limit])
	}
	return r, nil
}

func (c *call) printReplay(r *replayResult) error {
	if c.json {
		return c.printJSON(r)
	}
	for _, out := range r.Outputs {
		c.printf("output %s (%s): %s\n", word(out.Name), out.Kind, counted(out.Total, "row", "rows"))
		for _, row := range out.Rows {
			c.printf("  %s\n", row)
		}
		if more := out.Total - len(out.Rows); more > 0 {
			c.printf("  and %d more\n", more)
		}
	}
	for _, op := range r.Operators {
		if op.Same {
			c.printf("operator %s: version %d came out as it was committed\n", word(op.Name), r.Version)
			continue
		}
		c.printf("operator %s: version %d came out another way", word(op.Name), r.Version)
		if op.Text != "" {
			c.printf(": %s", op.Text)
		}
		c.printf("\n")
		c.printDiff(op.Differences)
	}
	return nil
}

// printRow writes a row of an output as JSON, or as text where JSON cannot.
func printRow(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(fmt.Sprintf("%+v", v)) // a string: it cannot fail
	}
	return b
}

// rowsOf takes a []T apart.
func rowsOf(rows any, limit int) (total int, first []json.RawMessage, err error) {
	v := reflect.ValueOf(rows)
	if v.Kind() != reflect.Slice {
		return 0, nil, fmt.Errorf("an output gave a %T where a slice is wanted", rows)
	}
	first = []json.RawMessage{}
	for i := range v.Len() {
		if limit > 0 && i == limit {
			break
		}
		first = append(first, printRow(v.Index(i).Interface()))
	}
	return v.Len(), first, nil
}
