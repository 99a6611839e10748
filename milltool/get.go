package milltool

import (
	"context"
	"encoding/json"
	"flag"
)

// getResult is the document of get -json.
type getResult struct {
	// Version is the version that was read, Partition where the key lies.
	Version   uint64 `json:"version"`
	Partition int    `json:"partition"`
	// Key and State are printed by their schemas; State is absent for a key
	// that has a deadline alone.
	Key   json.RawMessage `json:"key"`
	State json.RawMessage `json:"state,omitempty"`
	times
}

const keyHelp = `KEY is written by the key's type: a string as it is, an integer in decimal, a bool, a float, an array or a struct
as JSON with all its fields (as dump prints it). A KEY that begins with - and is no number goes after --.`

func getCommand() command {
	return command{
		name: "get", args: []string{"DIR", "OP", "KEY"},
		short: "show the state of a key",
		long:  "Shows the state of one key of an operator, as of the newest version or another one that is kept.\n" + keyHelp + "\nA key that is not there is exit code 1.",
		json:  "one document",
		bind: func(c *call, flags *flag.FlagSet) func(context.Context) error {
			var at versionFlag
			flags.Var(&at, "version", "read version `N`, not the newest")
			return func(ctx context.Context) error {
				return c.read(ctx, c.args[0], func(v *view) error { return c.get(ctx, v, at) })
			}
		},
	}
}

func (c *call) get(ctx context.Context, v *view, at versionFlag) error {
	commit, err := v.at(ctx, at)
	if err != nil {
		return err
	}
	op, err := v.operator(ctx, commit, c.args[1])
	if err != nil {
		return err
	}
	key, err := keyOf(op, c.args[2])
	if err != nil {
		return err
	}
	e, err := v.find(ctx, op, key, commit.Epoch)
	if err != nil {
		return err
	}
	if e == nil {
		c.note("operator %s has no key %q in version %d", word(op.Name), shorten(c.args[2]), commit.Epoch)
		return errFound
	}
	r := getResult{Version: commit.Epoch, Partition: e.part, times: timesOf(op, e.time)}
	if r.Key, err = keyJSON(op, e.key); err != nil {
		return err
	}
	if r.State, err = stateJSON(op, e); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(r)
	}
	c.table(func(add func(...string)) {
		add("key", shown(r.Key))
		add("state", dash(shown(r.State)))
		if op.Deadlines {
			add("deadline", dash(r.Deadline))
		} else {
			add("updated", dash(r.Updated))
		}
		add("version", number(r.Version))
		add("partition", number(r.Partition))
	})
	return nil
}
