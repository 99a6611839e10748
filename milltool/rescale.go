package milltool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/partitioner"
)

// rescaleResult is the document of rescale -json.
type rescaleResult struct {
	// Version is the version with the new numbers; 0 if nothing had to change.
	Version uint64 `json:"version"`
	// Operators are those that were named.
	Operators []rescaledOperator `json:"operators"`
}

type rescaledOperator struct {
	Name string `json:"name"`
	// From and To are the numbers of partitions, Layout that of the new files.
	From   int   `json:"from"`
	To     int   `json:"to"`
	Layout int   `json:"layout"`
	Keys   int64 `json:"keys"`
}

func rescaleCommand() command {
	return command{
		name: "rescale", args: []string{"DIR", "OP=N"}, more: true,
		short: "change the number of partitions of operators",
		long: `Gives operators another number of partitions: each key goes where the operator's partitioner puts it, with its state and
its time. It is an epoch of its own, which reads no records, and all or nothing: a broken-off one is finished by the next run.
Older versions stay readable. The job must be stopped, must have no epoch pending, and must be given the new number afterwards.
Operators with a partitioner of the user's own are refused: start the job once with its WithRescale option.
An OP that contains = is cut at the last one.`,
		json: "one document",
		bind: func(c *call, flags *flag.FlagSet) func(context.Context) error {
			var own ownFlags
			own.bind(flags)
			return func(ctx context.Context) error { return c.rescale(ctx, own) }
		},
	}
}

func (c *call) rescale(ctx context.Context, own ownFlags) (err error) {
	wanted, order, err := wantedPartitions(c.args[1:])
	if err != nil {
		return err
	}
	dir := c.args[0]
	store, err := c.existing(dir)
	if err != nil {
		return err
	}
	from := map[string]checkpoint.Operator{}
	session, err := c.own(ctx, store, own, dir, true, func(meta *checkpoint.Metadata, ops []checkpoint.JobOperator) error {
		return setPartitions(meta, ops, wanted, order, from)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	commit := session.Start().Commit
	result := rescaleResult{}
	for _, name := range order {
		now, err := session.Root().Metadata(ctx, commit.Metadata)
		if err != nil {
			return err
		}
		op := now.Operator(name)
		r := rescaledOperator{Name: name, From: from[name].Partitions, To: op.Partitions, Layout: op.Layout}
		for _, p := range commit.Operator(op.Number).Partitions {
			r.Keys += p.Keys
		}
		if r.From != r.To {
			result.Version = commit.Epoch
		}
		result.Operators = append(result.Operators, r)
	}
	if c.json {
		return c.printJSON(result)
	}
	for _, r := range result.Operators {
		if r.From == r.To {
			c.printf("operator %s has %s already\n", word(r.Name), counted(r.To, "partition", "partitions"))
		} else {
			c.printf("operator %s: from %d to %d partitions, %s, as version %d\n", word(r.Name), r.From, r.To, counted(r.Keys, "key", "keys"), result.Version)
		}
	}
	return nil
}

// mostPartitions keeps a slip of the finger from making so many files.
const mostPartitions = 1 << 16

// wantedPartitions reads the arguments OP=N.
func wantedPartitions(args []string) (wanted map[string]int, order []string, err error) {
	wanted = map[string]int{}
	for _, a := range args {
		at := strings.LastIndexByte(a, '=')
		if at < 0 {
			return nil, nil, usagef("%q is not OP=N", shorten(a))
		}
		name := a[:at]
		n, err := strconv.Atoi(a[at+1:])
		if err != nil || n < 1 || n > mostPartitions {
			return nil, nil, usagef("%q: want a number of partitions from 1 to %d after the =", shorten(a), mostPartitions)
		}
		if _, twice := wanted[name]; twice {
			return nil, nil, usagef("operator %q is named twice", shorten(name))
		}
		wanted[name] = n
		order = append(order, name)
	}
	return wanted, order, nil
}

// setPartitions sets the numbers that are wanted, or says why it cannot.
func setPartitions(meta *checkpoint.Metadata, ops []checkpoint.JobOperator, wanted map[string]int, order []string, from map[string]checkpoint.Operator) error {
	var errs []error
	for _, name := range order {
		op := meta.Operator(name)
		if op == nil {
			errs = append(errs, fmt.Errorf("there is no operator %q", shorten(name)))
			continue
		}
		from[name] = *op
		if _, ok := partitioner.Stored(op.Partitioner); !ok && op.Partitions != wanted[name] {
			errs = append(errs, fmt.Errorf("operator %q is partitioned by %s, a function that only the job has: start the job once with WithRescale", name, op.Partitioner))
		}
	}
	for i := range ops {
		if n, ok := wanted[ops[i].Name]; ok {
			ops[i].Partitions = n
		}
	}
	return errors.Join(errs...)
}
