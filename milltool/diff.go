package milltool

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"slices"

	"github.com/statemill/statemill/checkpoint"
)

// diffRow is a line of diff -json.
type diffRow struct {
	// Change is "added", "removed", "changed", or with -touched "touched": the
	// time differs and the state does not.
	Change string          `json:"change"`
	Key    json.RawMessage `json:"key"`
	// Old and New are the states, absent where there is none.
	Old json.RawMessage `json:"old,omitempty"`
	New json.RawMessage `json:"new,omitempty"`
	times
}

// The words for changes.
const (
	added   = "added"
	removed = "removed"
	changed = "changed"
	touched = "touched"
)

func diffCommand() command {
	return command{
		name: "diff", args: []string{"DIR", "OP", "A", "B"},
		short: "compare the states of two versions",
		long: `Compares an operator's keys in version A with those in version B and prints those that differ, in the order of the
keys' bytes: + added, - removed, ~ changed. Both versions are held in memory. That they differ is no failure: the exit code is 0.`,
		json: "one line a key that differs",
		bind: func(c *call, flags *flag.FlagSet) func(context.Context) error {
			var touches bool
			flags.BoolVar(&touches, "touched", false, "print keys of which only the time differs too (=)")
			return func(ctx context.Context) error {
				a, err := parseVersion(c.args[2])
				if err != nil {
					return err
				}
				b, err := parseVersion(c.args[3])
				if err != nil {
					return err
				}
				return c.read(ctx, c.args[0], func(v *view) error { return c.diff(ctx, v, a, b, touches) })
			}
		},
	}
}

// side is one of the two versions of a diff.
type side struct {
	op   *checkpoint.Operator // nil: the version has no such operator
	keys map[string]*entry
}

func (c *call) diff(ctx context.Context, v *view, a, b uint64, touches bool) error {
	old, errOld := v.side(ctx, a, c.args[1])
	if errOld != nil && (old == nil || old.op != nil) {
		return errOld
	}
	now, errNow := v.side(ctx, b, c.args[1])
	if errNow != nil && (now == nil || now.op != nil || errOld != nil) {
		return errNow
	}
	rows, err := compare(old, now, touches)
	if err != nil {
		return err
	}
	if c.json {
		return printEach(c, rows)
	}
	c.printDiff(rows)
	return nil
}

// printDiff prints differences for people.
func (c *call) printDiff(rows []diffRow) {
	mark := map[string]string{added: "+", removed: "-", changed: "~", touched: "="}
	c.table(func(add func(...string)) {
		for _, r := range rows {
			state := shown(r.New)
			switch r.Change {
			case removed:
				state = shown(r.Old)
			case changed:
				state = dash(shown(r.Old)) + " → " + dash(shown(r.New))
			}
			add(mark[r.Change], shown(r.Key), dash(state))
		}
	})
}

// side reads all of an operator's keys. Without such an operator the error is
// that, and the side is empty.
func (v *view) side(ctx context.Context, n uint64, name string) (*side, error) {
	commit, err := v.at(ctx, versionFlag{true, n})
	if err != nil {
		return nil, err
	}
	s := &side{keys: map[string]*entry{}}
	if s.op, err = v.operator(ctx, commit, name); err != nil {
		if none := (*noOperatorError)(nil); errors.As(err, &none) {
			return s, err
		}
		return nil, err
	}
	for _, part := range every(s.op) {
		list, err := v.entries(ctx, s.op, part, n)
		if err != nil {
			return nil, err
		}
		for i := range list {
			s.keys[list[i].key] = &list[i]
		}
	}
	return s, nil
}

func compare(old, now *side, touches bool) ([]diffRow, error) {
	keys := maps.Clone(old.keys)
	maps.Copy(keys, now.keys)
	var rows []diffRow
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		r, err := compareKey(old.op, now.op, old.keys[k], now.keys[k])
		if err != nil {
			return nil, err
		}
		if r.Change != "" && (touches || r.Change != touched) {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// compareKey says how a key has changed from one entry to another; either may
// be nil.
func compareKey(oldOp, newOp *checkpoint.Operator, o, n *entry) (r diffRow, err error) {
	switch {
	case o == nil && n == nil:
		return r, nil
	case o == nil:
		r.Change = added
	case n == nil:
		r.Change = removed
	case !o.same(n):
		r.Change = changed
	case o.time != n.time:
		r.Change = touched
	default:
		return r, nil
	}
	if o != nil {
		if r.Key, err = keyJSON(oldOp, o.key); err != nil {
			return r, err
		}
		if r.Old, err = stateJSON(oldOp, o); err != nil {
			return r, err
		}
	}
	if n != nil {
		if r.Key, err = keyJSON(newOp, n.key); err != nil {
			return r, err
		}
		if r.New, err = stateJSON(newOp, n); err != nil {
			return r, err
		}
		r.times = timesOf(newOp, n.time)
	}
	return r, nil
}
