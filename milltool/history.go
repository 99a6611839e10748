package milltool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// historyRow is a line of history -json.
type historyRow struct {
	// Version is the version that changed the key, Time its batch time.
	Version uint64 `json:"version"`
	Time    string `json:"time"`
	// Key, Change, Old and New are as in diff; the change of the oldest version
	// that is kept is "present": what happened before is gone.
	diffRow
}

// present is the change of a key that was there already.
const present = "present"

func historyCommand() command {
	return command{
		name: "history", args: []string{"DIR", "OP", "KEY"},
		short: "show every version in which a key changed",
		long: `Shows what became of one key: each version that is kept and changed it, with the state before and after.
The first line is the key as the oldest version has it, if it has it. Only the files of the key's partition are read.
` + keyHelp,
		json: "one line a change",
		bind: func(c *call, flags *flag.FlagSet) func(context.Context) error {
			var touches bool
			var at versionFlag
			flags.BoolVar(&touches, "touched", false, "show versions that changed only the time too (=)")
			flags.Var(&at, "version", "end with version `N`, not with the newest")
			return func(ctx context.Context) error {
				return c.read(ctx, c.args[0], func(v *view) error { return c.history(ctx, v, at, touches) })
			}
		},
	}
}

func (c *call) history(ctx context.Context, v *view, at versionFlag, touches bool) error {
	rows, err := v.walk(ctx, at, c.args[1], c.args[2])
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		c.note("no version that is kept has the key %q", shorten(c.args[2]))
		return errFound
	}
	if c.json {
		for _, r := range rows {
			if touches || r.Change != touched {
				if err := c.printJSON(r); err != nil {
					return err
				}
			}
		}
		return nil
	}
	c.table(func(add func(...string)) {
		add("VERSION", "TIME", "CHANGE", "STATE")
		for _, r := range rows {
			state := dash(shown(r.New))
			switch r.Change {
			case changed:
				state = dash(shown(r.Old)) + " → " + state
			case removed:
				state = shown(r.Old) + " →"
			case touched:
				if !touches {
					continue
				}
			}
			add(number(r.Version), r.Time, r.Change, state)
		}
	})
	return nil
}

// walk follows a key from the oldest version to the newest, or to another one.
func (v *view) walk(ctx context.Context, at versionFlag, name, text string) ([]historyRow, error) {
	newest, err := v.at(ctx, at)
	if err != nil {
		return nil, err
	}
	oldest, err := v.begins(ctx, newest, name, text)
	if err != nil {
		return nil, err
	}
	var rows []historyRow
	var missing error // the operator's absence in the newest version that lacks it
	var seen bool
	w := walker{v: v, text: text}
	for n := oldest; n <= newest.Epoch; n++ {
		commit, err := v.root.Commit(ctx, n)
		if err != nil {
			return nil, err
		}
		op, err := v.operator(ctx, commit, name)
		var none *noOperatorError
		switch {
		case errors.As(err, &none):
			missing = err
		case err != nil:
			return nil, err
		default:
			seen = true
		}
		d, err := w.step(ctx, commit, op, n == oldest)
		if err != nil {
			return nil, err
		}
		if d.Change != "" {
			rows = append(rows, historyRow{Version: n, Time: stamp(commit.Time), diffRow: d})
		}
	}
	if !seen {
		return nil, missing
	}
	return rows, nil
}

// begins gives the version that the history of a key begins with: the oldest one that
// is kept, or the first snapshot of the key's partition after it.
func (v *view) begins(ctx context.Context, newest *checkpoint.Commit, name, text string) (uint64, error) {
	oldest, err := v.oldest(ctx)
	if err != nil {
		return 0, err
	}
	for {
		next, err := v.startsAfter(ctx, oldest, name, text)
		if err != nil || next == 0 || next > newest.Epoch {
			return oldest, err
		}
		oldest = next
	}
}

// startsAfter gives the first snapshot after a version of a key's partitions, if one of
// them cannot be read in it; 0 if all can be, or if there are none.
func (v *view) startsAfter(ctx context.Context, n uint64, name, text string) (next uint64, err error) {
	commit, err := v.root.Commit(ctx, n)
	if err != nil {
		return 0, err
	}
	op, err := v.operator(ctx, commit, name)
	if none := (*noOperatorError)(nil); errors.As(err, &none) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	key, err := keyOf(op, text)
	if err != nil {
		return 0, err
	}
	for _, part := range places(op, key) {
		_, err := v.root.Files(ctx, op.Number, part, n)
		var none *checkpoint.NoStartError
		switch {
		case errors.As(err, &none) && none.Next > 0:
			next = max(next, none.Next)
		case err != nil:
			return 0, err
		}
	}
	return next, nil
}

// walker holds a key as the version before has it.
type walker struct {
	v    *view
	text string
	op   *checkpoint.Operator // nil: there was none
	last *entry               // nil: it was not there
}

// step takes the next version. op is nil if it has no such operator.
func (w *walker) step(ctx context.Context, commit *checkpoint.Commit, op *checkpoint.Operator, first bool) (diffRow, error) {
	before := w.last
	oldOp := w.op
	w.op = op
	if op == nil {
		w.last = nil
		return compareKey(oldOp, op, before, nil)
	}
	key, err := keyOf(op, w.text)
	if err != nil {
		return diffRow{}, err
	}
	switch {
	case first:
		w.last, err = w.v.find(ctx, op, key, commit.Epoch)
	case oldOp != nil && oldOp.Number != op.Number: // dropped, and another one has its name
		w.last = nil
		fallthrough
	default:
		w.last, err = w.v.after(ctx, commit, op, key, w.last)
	}
	if err != nil {
		return diffRow{}, err
	}
	d, err := compareKey(oldOp, op, before, w.last)
	if first && d.Change == added {
		d.Change = present
	}
	return d, err
}

// after gives a key after a version from that before and the version's files.
func (v *view) after(ctx context.Context, commit *checkpoint.Commit, op *checkpoint.Operator, key []byte, last *entry) (*entry, error) {
	oc := commit.Operator(op.Number)
	for _, part := range places(op, key) {
		p := &oc.Partitions[part]
		if p.File == "" {
			continue
		}
		e, removed, err := v.scan(ctx, commit, op, part, key)
		switch {
		case err != nil:
			return nil, err
		case e != nil:
			return e, nil
		case removed, p.Base && last != nil && (last.part == part || commit.Kind == checkpoint.KindChange):
			last = nil
		}
	}
	return last, nil
}

// scan looks for a key in the file of one version of a partition.
func (v *view) scan(ctx context.Context, commit *checkpoint.Commit, op *checkpoint.Operator, part int, key []byte) (found *entry, gone bool, err error) {
	p := &commit.Operator(op.Number).Partitions[part]
	file := stateFile(commit, op, part)
	err = eachRow(ctx, v.root.Store(), op, part, &file, func(b *statefile.Block, i int) {
		if string(b.Key(i)) != string(key) {
			return
		}
		if b.Removed(i) {
			gone, found = true, nil
			return
		}
		state, ok := b.State(i)
		found = &entry{part, string(key), append([]byte(nil), state...), ok, b.Time(i)}
	})
	if err != nil {
		return nil, false, fmt.Errorf("version %d, %s: %w", commit.Epoch, p.File, err)
	}
	return found, gone, nil
}

// stateFile is the file of a partition that a commit names.
func stateFile(commit *checkpoint.Commit, op *checkpoint.Operator, part int) checkpoint.File {
	p := &commit.Operator(op.Number).Partitions[part]
	return checkpoint.File{
		Name:    checkpoint.StateFolder(op.Number, op.Layout, part) + p.File,
		Version: commit.Epoch, Time: commit.Time, Kind: statefile.Delta, Base: p.Base,
		Chain: p.Chain, Checksum: p.Checksum, Size: p.Size, Keys: p.Keys,
	}
}

// eachRow reads a state file, checks all of it, and calls do for its rows. What
// do has seen counts only if the error is nil.
func eachRow(ctx context.Context, store vfs.Store, op *checkpoint.Operator, part int, file *checkpoint.File, do func(b *statefile.Block, i int)) error {
	o, err := store.Stat(ctx, file.Name) // the true length: what follows the file's end is damage
	if err != nil {
		return err
	}
	want := file.Want(op, part)
	want.KeyCodec, want.StateCodec = op.KeyCodec, op.StateCodec
	if sabotage.On("history-of-any-line") {
		want.Chain, want.Checksum = statefile.Sum{}, statefile.Sum{}
	}
	r, err := statefile.NewReader(checkpoint.OpenFile(ctx, store, file.Name, o.Size), file.Name, want)
	if err != nil {
		return err
	}
	if file.Base && !r.Info().Chain.IsZero() {
		return &statefile.CorruptError{Path: file.Name, Operator: op.Name, Partition: part, Version: int64(file.Version),
			Reason: "it follows another file, and its commit calls it a base"}
	}
	var frame statefile.Frame
	var b statefile.Block
	for {
		switch err := r.Next(&frame); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := b.Decode(&frame); err != nil {
			return err
		}
		for i := range b.Len() {
			do(&b, i)
		}
	}
}
