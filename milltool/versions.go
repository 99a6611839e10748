package milltool

import (
	"context"
	"flag"
	"fmt"
)

// versionRow is a line of versions -json.
type versionRow struct {
	// Version is the epoch's number, Kind "batch" or "change".
	Version uint64 `json:"version"`
	Kind    string `json:"kind"`
	// Time is the batch time, Term the number of the run that committed it.
	Time string `json:"time"`
	Term uint64 `json:"term"`
	// Keys is the number of keys of all operators after it.
	Keys int64 `json:"keys"`
	// DeltaBytes is the length of the files that hold what it changed; Bases of
	// them hold all of their partition.
	DeltaBytes int64 `json:"deltaBytes"`
	Bases      int   `json:"bases"`
	// Snapshots is the number of snapshots of it that lie in the root,
	// Partitions that of the partitions there are.
	Snapshots  int `json:"snapshots"`
	Partitions int `json:"partitions"`
	// Floor is the oldest version kept when it was committed, 0 for all.
	Floor uint64 `json:"floor"`
}

func versionsCommand() command {
	return command{
		name: "versions", args: []string{"DIR"},
		short: "list the versions that are kept",
		long: `Lists the epochs that the root keeps, oldest first: each is a version that get, dump, diff and history can read.
A batch read records; a change changed the number of partitions, a stored type or the set of operators.
DELTA is the length of the files of what the version changed, SNAPS how many partitions have a snapshot of it
(or a base: a delta that holds everything), and F the oldest version that was kept when it was committed.`,
		json: "one line a version",
		bind: func(c *call, _ *flag.FlagSet) func(context.Context) error {
			return func(ctx context.Context) error {
				return c.read(ctx, c.args[0], func(v *view) error { return c.versions(ctx, v) })
			}
		},
	}
}

func (c *call) versions(ctx context.Context, v *view) error {
	rows, err := versionRows(ctx, v)
	if err != nil {
		return err
	}
	if c.json {
		return printEach(c, rows)
	}
	if len(rows) == 0 {
		c.printf("no version is committed yet\n")
		return nil
	}
	c.table(func(add func(...string)) {
		add("VERSION", "KIND", "TIME", "TERM", "KEYS", "DELTA", "SNAPS", "F")
		for _, r := range rows {
			add(number(r.Version), r.Kind, dash(r.Time), number(r.Term), number(r.Keys), sizeText(r.DeltaBytes),
				fmt.Sprintf("%d/%d", r.Snapshots+r.Bases, r.Partitions), number(r.Floor))
		}
	})
	return nil
}

func versionRows(ctx context.Context, v *view) ([]versionRow, error) {
	if v.newest == nil {
		return nil, nil
	}
	snapshots, err := v.snapshots(ctx)
	if err != nil {
		return nil, err
	}
	oldest, err := v.oldest(ctx)
	if err != nil {
		return nil, err
	}
	var rows []versionRow
	for n := oldest; n <= v.newest.Epoch; n++ {
		commit, err := v.root.Commit(ctx, n)
		if err != nil {
			return nil, err
		}
		r := versionRow{Version: n, Kind: commit.Kind, Time: stamp(commit.Time), Term: commit.Term, Floor: commit.Floor}
		for _, op := range commit.Operators {
			r.Partitions += len(op.Partitions)
			for i, p := range op.Partitions {
				r.Keys += p.Keys
				r.DeltaBytes += p.Size
				if p.Base {
					r.Bases++
				} else if snapshots[partVersion{op.Number, op.Layout, i, n}] {
					r.Snapshots++
				}
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// partVersion is a version of one partition.
type partVersion struct {
	number, layout, part int
	version              uint64
}

// snapshots lists which versions of which partitions have a snapshot, good or
// bad.
func (v *view) snapshots(ctx context.Context) (map[partVersion]bool, error) {
	list, err := v.root.Store().List(ctx, "state/")
	if err != nil {
		return nil, err
	}
	all := map[partVersion]bool{}
	for at := range snapshotsIn(list) {
		all[at] = true
	}
	return all, nil
}
