package checkpoint

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
)

const perEpoch = 10

// one runs one epoch.
func (j *job) one(ctx context.Context) error {
	s := j.s
	n := s.Epoch()
	plan := s.Start().Pending
	if plan == nil {
		j.step("plan", n)
		from := int64(0)
		prev := int64(zero)
		if last := s.Start().Last; last != nil {
			from, prev = last.Sources[0].Ranges[0].Until, last.Time
		}
		plan = &Plan{Time: prev + second, Prev: prev, Watermark: prev, Sources: []SourcePlan{{Name: "lines",
			Ranges: []source.Range{{Partition: "0", From: from, Until: from + perEpoch}}}}}
		if err := s.Plan(ctx, *plan); err != nil {
			return err
		}
	}
	next, touched := j.compute(plan)
	j.step("deltas", n)
	if err := s.Deltas(ctx); err != nil {
		return err
	}
	ops, err := j.deltas(ctx, n, plan.Time, next, touched)
	if err != nil {
		return s.Aborted(ctx, err)
	}
	j.step("outputs", n)
	if err := s.Outputs(); err != nil {
		return err
	}
	if len(j.cfg.Sinks) > 0 {
		j.step("sinks", n)
		var units []sink.Writer
		for _, u := range j.cfg.Sinks {
			w, err := sink.NewWriter(u, n, []sink.Output{sink.Bind(sink.Sink[string]{Unit: u, Encode: func(dst []byte, row string) ([]byte, error) { return append(dst, row...), nil }},
				"out", 1, func(_ context.Context, _ int, yield func(string) error) error {
					return j.output(plan.Time, next, touched, yield)
				})}, nil)
			if err != nil {
				return err
			}
			units = append(units, w)
		}
		if err := s.Sinks(ctx, CommitInput{Operators: ops, Counters: j.counters()}, units); err != nil {
			return err
		}
	}
	j.step("commit", n)
	in := CommitInput{Operators: ops, Watermark: plan.Time, Counters: j.counters()}
	if j.keep > 0 && n > j.keep && j.whole[n-j.keep] {
		in.Floor = n - j.keep
	}
	c, err := s.Commit(ctx, in)
	if err != nil {
		return err
	}
	j.step("committed", n)
	j.parts, j.epoch = next, c.Epoch
	if j.keep > 0 {
		if err := j.maintain(ctx, c); err != nil {
			return err
		}
	}
	if s.Start().ChangeWanted {
		if err := s.Change(ctx); err != nil {
			return err
		}
		return j.load(ctx)
	}
	return nil
}

// maintain writes a snapshot of every partition and deletes what P5 allows, as
// maintenance does beside the batches.
func (j *job) maintain(ctx context.Context, c *Commit) error {
	for i := range j.s.Start().Operators {
		op := &j.s.Start().Operators[i]
		for p, rows := range j.parts[op.Name] {
			name := StateName{Number: op.Number, Layout: op.Layout, Part: p, Version: c.Epoch, Term: j.s.Term(), Kind: statefile.Snapshot}
			info := statefile.Info{Kind: statefile.Snapshot, Operator: op.Name, Partition: p, Version: int64(c.Epoch), BatchTime: c.Time,
				KeyCodec: op.KeyCodec, StateCodec: op.StateCodec, Chain: c.Operator(op.Number).Partitions[p].Chain}
			if err := j.s.Put(ctx, name.String(), func(w io.Writer) error {
				_, err := encodeRows(w, info, rows, slices.Sorted(maps.Keys(rows)))
				return err
			}); err != nil {
				return err
			}
		}
	}
	if j.whole == nil {
		j.whole = map[uint64]bool{}
	}
	j.whole[c.Epoch] = true
	list, err := j.cfg.Store.List(ctx, "")
	if err != nil {
		return err
	}
	commits := func(n uint64) *Commit {
		c, err := j.s.Root().Commit(ctx, n)
		if err != nil {
			return nil
		}
		return c
	}
	for _, o := range list {
		if !strings.Contains(o.Name, ".tmp.") && Deletable(o.Name, c, commits) {
			if err := j.cfg.Store.Delete(ctx, o.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// compute counts the records of a plan.
func (j *job) compute(p *Plan) (next map[string][]map[string]value, touched map[string][][]string) {
	next, touched = map[string][]map[string]value{}, map[string][][]string{}
	for name, parts := range j.parts {
		if name == j.quiet {
			next[name], touched[name] = parts, make([][]string, len(parts))
			continue
		}
		place, _ := partitioner.Stored("hash")
		to := make([]map[string]value, len(parts))
		for i := range parts {
			to[i] = maps.Clone(parts[i])
		}
		order := make([][]string, len(parts))
		r := p.Sources[0].Ranges[0]
		for i := r.From; i < r.Until; i++ {
			w := j.word(i)
			part := place([]byte(w), len(parts))
			was := number(to[part][w].state)
			if was == 4 {
				delete(to[part], w)
			} else {
				to[part][w] = value{state: binary.AppendVarint(nil, was+1), time: p.Time}
			}
			if !slices.Contains(order[part], w) {
				order[part] = append(order[part], w)
			}
		}
		next[name], touched[name] = to, order
	}
	return next, touched
}

func number(state []byte) int64 {
	n, _ := binary.Varint(state)
	return n
}

// deltas writes what an epoch changed; a partition without changes has no file.
func (j *job) deltas(ctx context.Context, n uint64, t int64, next map[string][]map[string]value, touched map[string][][]string) ([]OperatorCommit, error) {
	start := j.s.Start()
	var out []OperatorCommit
	for i := range start.Operators {
		op, ch := &start.Operators[i], &start.Changes[i]
		oc := OperatorCommit{Number: op.Number, Layout: op.Layout, Partitions: make([]PartitionCommit, op.Partitions)}
		for p := range oc.Partitions {
			rows, keys := next[op.Name][p], touched[op.Name][p]
			base := ch.Migrated || ch.Fresh && j.jobOperator(op.Name).HasInitial
			if base {
				keys = slices.Sorted(maps.Keys(rows))
			}
			if len(keys) == 0 && !base {
				continue
			}
			pc, err := j.put(ctx, op, p, n, t, rows, keys, base)
			if err != nil {
				return nil, err
			}
			oc.Partitions[p] = pc
		}
		out = append(out, oc)
	}
	return out, nil
}

func (j *job) put(ctx context.Context, op *Operator, part int, n uint64, t int64, rows map[string]value, keys []string, base bool) (PartitionCommit, error) {
	info := statefile.Info{Kind: statefile.Delta, Operator: op.Name, Partition: part, Version: int64(n), BatchTime: t,
		Deadlines: op.Deadlines, KeyCodec: op.KeyCodec, StateCodec: op.StateCodec}
	if c := j.s.Start().Commit; c != nil && !base {
		if oc := c.Operator(op.Number); oc != nil {
			info.Chain = oc.Partitions[part].Chain
		}
	}
	name := StateName{Number: op.Number, Layout: op.Layout, Part: part, Version: n, Term: j.s.Term(), Kind: statefile.Delta}
	var sum statefile.Summary
	err := j.s.Put(ctx, name.String(), func(w io.Writer) (err error) {
		sum, err = encodeRows(w, info, rows, keys)
		return err
	})
	return PartitionCommit{File: name.Base(), Base: base, Size: sum.Size, Checksum: sum.Checksum, Chain: sum.Chain, Keys: int64(len(rows))}, err
}

func encodeRows(w io.Writer, info statefile.Info, rows map[string]value, keys []string) (statefile.Summary, error) {
	var e statefile.RawEncoder
	if err := e.Begin(w, info); err != nil {
		return statefile.Summary{}, err
	}
	for _, k := range keys {
		var err error
		if v, ok := rows[k]; ok {
			err = e.Put([]byte(k), v.state, v.time)
		} else {
			err = e.Remove([]byte(k))
		}
		if err != nil {
			return statefile.Summary{}, err
		}
	}
	return e.End()
}

// output gives the rows of an epoch's output: the touched keys.
func (j *job) output(at int64, next map[string][]map[string]value, touched map[string][][]string, yield func(string) error) error {
	var rows []string
	for name := range next {
		for p := range next[name] {
			for _, k := range touched[name][p] {
				rows = append(rows, fmt.Sprintf("%d %s %s=%d%s", (at-zero)/second, name, k, number(next[name][p][k].state), j.drift))
			}
		}
	}
	slices.Sort(rows)
	for _, r := range rows {
		if err := yield(r); err != nil {
			return err
		}
	}
	return nil
}
