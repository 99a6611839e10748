package milltool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/sabotage"
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

// mostFaults is how many faults versions tells one by one.
const mostFaults = 20

func versionsCommand() command {
	return command{
		name: "versions", args: []string{"DIR"},
		short: "list the versions that are kept",
		long: `Lists the epochs that the root keeps, oldest first: each is a version that get, dump, diff and history can read.
(Partitions take their snapshots at different versions: the first ones may lie before the first snapshot of a partition.)
A batch read records; a change changed the number of partitions, a stored type or the set of operators.
DELTA is the length of the files of what the version changed, SNAPS how many partitions have a snapshot of it
(or a base: a delta that holds everything), and F the oldest version that was kept when it was committed.
Where commits are damaged or missing it lists the others, names each of those files as an error, and the exit code is 1.`,
		json: "one line a version",
		bind: func(c *call, _ *flag.FlagSet) func(context.Context) error {
			return func(ctx context.Context) error {
				return c.read(ctx, c.args[0], func(v *view) error { return c.versions(ctx, v) })
			}
		},
	}
}

func (c *call) versions(ctx context.Context, v *view) error {
	rows, faults, err := versionRows(ctx, v)
	if err != nil {
		return err
	}
	for i, f := range faults {
		if i == mostFaults {
			v.notice(checkpoint.Notice{Text: fmt.Sprintf("and %s", counted(len(faults)-i, "more fault", "more faults"))})
			break
		}
		v.notice(checkpoint.Notice{Text: f.Error()})
	}
	var end error
	if len(faults) > 0 && !sabotage.On("versions-hides-damage") {
		end = errFound
	}
	if c.json {
		return errors.Join(printEach(c, rows), end)
	}
	if len(rows) == 0 {
		if end == nil {
			c.printf("no version is committed yet\n")
		}
		return end
	}
	c.table(func(add func(...string)) {
		add("VERSION", "KIND", "TIME", "TERM", "KEYS", "DELTA", "SNAPS", "F")
		for _, r := range rows {
			add(number(r.Version), r.Kind, dash(r.Time), number(r.Term), number(r.Keys), sizeText(r.DeltaBytes),
				fmt.Sprintf("%d/%d", r.Snapshots+r.Bases, r.Partitions), number(r.Floor))
		}
	})
	return end
}

// versionRows gives the versions that are kept, and what is the matter with commits
// that cannot be read.
func versionRows(ctx context.Context, v *view) (rows []versionRow, faults []error, err error) {
	if v.newest == nil && v.damage == nil {
		return nil, nil, nil
	}
	nums, err := v.kept(ctx)
	if err != nil {
		return nil, nil, err
	}
	snapshots, err := v.snapshots(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(nums) == 0 {
		return nil, []error{v.damage}, nil
	}
	next := nums[0]
	if gap := (*checkpoint.GapError)(nil); errors.As(v.damage, &gap) {
		next = max(gap.Floor, 1)
	}
	for _, n := range nums {
		if n > next {
			faults = append(faults, v.hole(next, n))
		}
		next = n + 1
		commit, err := v.root.Commit(ctx, n)
		switch {
		case err == nil:
			rows = append(rows, versionRowOf(commit, snapshots))
		case damaged(err) && !errors.Is(err, fs.ErrNotExist):
			faults = append(faults, err)
		default:
			return nil, nil, err
		}
	}
	return rows, faults, nil
}

// versionRowOf is the line of a version.
func versionRowOf(commit *checkpoint.Commit, snapshots map[partVersion]bool) versionRow {
	r := versionRow{Version: commit.Epoch, Kind: commit.Kind, Time: stamp(commit.Time), Term: commit.Term, Floor: commit.Floor}
	for _, op := range commit.Operators {
		r.Partitions += len(op.Partitions)
		for i, p := range op.Partitions {
			r.Keys += p.Keys
			r.DeltaBytes += p.Size
			if p.Base {
				r.Bases++
			} else if snapshots[partVersion{op.Number, op.Layout, i, commit.Epoch}] {
				r.Snapshots++
			}
		}
	}
	return r
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
