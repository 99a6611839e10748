package milltool

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
)

// dumpRow is a line of dump -json.
type dumpRow struct {
	// Partition is where the key lies.
	Partition int `json:"partition"`
	// Key and State as get has them.
	Key   json.RawMessage `json:"key"`
	State json.RawMessage `json:"state,omitempty"`
	times
}

// dumpFlags are the flags of dump.
type dumpFlags struct {
	at    versionFlag
	part  int
	limit int
}

func dumpCommand() command {
	return command{
		name: "dump", args: []string{"DIR", "OP"},
		short: "print the keys of an operator with their states",
		long: `Prints the keys of an operator, partition by partition and in the order of their bytes, with their states and the
batch time of the last update (or the deadline, in operators that set deadlines). All partitions that are asked for are read
and checked before the first line is printed, so they must fit into memory.`,
		json: "one line a key",
		bind: func(c *call, flags *flag.FlagSet) func(context.Context) error {
			var f dumpFlags
			flags.Var(&f.at, "version", "read version `N`, not the newest")
			flags.IntVar(&f.part, "partition", -1, "print only partition `P`")
			flags.IntVar(&f.limit, "limit", 0, "print at most `n` keys; 0 prints all")
			return func(ctx context.Context) error {
				if f.limit < 0 {
					return usagef("-limit %d: want 0 (all) or more", f.limit)
				}
				return c.read(ctx, c.args[0], func(v *view) error { return c.dump(ctx, v, f) })
			}
		},
	}
}

func (c *call) dump(ctx context.Context, v *view, f dumpFlags) error {
	commit, err := v.at(ctx, f.at)
	if err != nil {
		return err
	}
	op, err := v.operator(ctx, commit, c.args[1])
	if err != nil {
		return err
	}
	if f.part >= op.Partitions || f.part < -1 {
		return fmt.Errorf("there is no partition %d: operator %s has %d to %d", f.part, word(op.Name), 0, op.Partitions-1)
	}
	parts := []int{f.part}
	if f.part < 0 {
		parts = every(op)
	}
	var rows []dumpRow
	for _, part := range parts {
		list, err := v.entries(ctx, op, part, commit.Epoch)
		if err != nil {
			return err
		}
		for i := range list {
			if f.limit > 0 && len(rows) == f.limit {
				break
			}
			r := dumpRow{Partition: part, times: timesOf(op, list[i].time)}
			if r.Key, err = keyJSON(op, list[i].key); err != nil {
				return err
			}
			if r.State, err = stateJSON(op, &list[i]); err != nil {
				return err
			}
			rows = append(rows, r)
		}
		if f.limit > 0 && len(rows) == f.limit {
			break
		}
	}
	if c.json {
		return printEach(c, rows)
	}
	c.table(func(add func(...string)) {
		add("PARTITION", "KEY", timeTitle(op), "STATE")
		for _, r := range rows {
			add(number(r.Partition), shown(r.Key), r.text(), dash(shown(r.State)))
		}
	})
	return nil
}
