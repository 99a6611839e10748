package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/sabotage"
)

// File is a state file that a version consists of.
type File struct {
	// Name is the file's name in the store, Term that of its writer.
	Name string
	Term uint64
	// Version is the version that it makes, Time its batch time.
	Version uint64
	Time    int64
	// Kind is Delta for bases too.
	Kind statefile.Kind
	// Base tells a base from a delta.
	Base bool
	// Chain is the committed chain hash of the version. Prev is that of the
	// version before it, zero for bases and snapshots.
	Chain, Prev statefile.Sum
	// Checksum and Size are committed for deltas and bases. A snapshot has a
	// zero Checksum, and the Size that was listed.
	Checksum statefile.Sum
	Size     int64
	// Keys is the committed number of keys of the version.
	Keys int64
}

// Want is what a reader of the file must ask for.
func (f *File) Want(op *Operator, part int) *statefile.Want {
	return &statefile.Want{Kind: f.Kind, Operator: op.Name, Partition: part, Version: int64(f.Version),
		Deadlines: op.Deadlines, Chain: f.Chain, Checksum: f.Checksum}
}

// Files is what a version of one partition consists of: Start, then Deltas in
// their order.
type Files struct {
	// Operator is as the metadata of the version has it.
	Operator *Operator
	// Partition and Version are those that were asked for, Time and Chain those
	// of the version, Keys its number of keys.
	Partition int
	Version   uint64
	Time      int64
	Chain     statefile.Sum
	Keys      int64
	// Start is a snapshot or a base; nil if the version begins from nothing.
	Start *File
	// Deltas follow it, ascending.
	Deltas []File
}

// ErrNoStart is the class of [*NoStartError].
var ErrNoStart = errors.New("no good file to start from")

// NoStartError tells that a version cannot be loaded, because every snapshot
// that it could start from is bad or gone and what lies before is no longer kept.
type NoStartError struct {
	// Operator, Partition and Version say what was asked for.
	Operator  string
	Partition int
	Version   uint64
	// Folder is where its snapshots are.
	Folder string
	// Floor is the oldest version that is kept, Bad are the snapshots that
	// were passed over.
	Floor uint64
	Bad   []string
	// Next is the version of the first snapshot after Version, 0 if there is none.
	// Partitions take their snapshots at different versions, so the floor may lie
	// below the first one of some partition, and nothing is damaged then.
	Next uint64
}

// Error names all of it and the next step.
func (e *NoStartError) Error() string {
	if len(e.Bad) == 0 && e.Next > 0 {
		return fmt.Sprintf("%v: operator %q, partition %d, version %d: versions from %d on are kept, but in %s the first snapshot is of version %d: read that or a newer one",
			ErrNoStart, e.Operator, e.Partition, e.Version, e.Floor, e.Folder, e.Next)
	}
	bad := fmt.Sprintf("its folder %s has no snapshot from there on: restore the first one", e.Folder)
	if len(e.Bad) > 0 {
		bad = fmt.Sprintf("bad snapshots: %q: restore one of them", e.Bad)
	}
	return fmt.Sprintf("%v: operator %q, partition %d, version %d: versions from %d on are kept, %s from a copy of the root",
		ErrNoStart, e.Operator, e.Partition, e.Version, e.Floor, bad)
}

// Is makes every NoStartError an [ErrNoStart].
func (e *NoStartError) Is(target error) bool { return target == ErrNoStart }

// Files chooses the files of version n of a partition of an operator: the
// newest snapshot or base at or below n, and the deltas after it that the
// commits name. Snapshots whose names are among bad are passed over: so a load
// that finds one bad asks again. It lists the partition's folder once per call.
// Errors: those of Commit and Metadata; *NoStartError if a floor, or bad, has
// taken everything that the version could start from.
func (r *Root) Files(ctx context.Context, number, part int, n uint64, bad ...string) (*Files, error) {
	op, err := r.OperatorAt(ctx, number, n)
	if err != nil {
		return nil, err
	}
	top, err := r.partition(ctx, op, part, n)
	if err != nil {
		return nil, err
	}
	f := &Files{Operator: op, Partition: part, Version: n, Time: top.time, Chain: top.Chain, Keys: top.Keys}
	snapshots, err := r.snapshots(ctx, op, part, n, bad)
	if err != nil {
		return nil, err
	}
	floor := r.floor()
	from := max(op.Since, floor)
	if len(snapshots) > 0 {
		from = snapshots[0].Version
	}
	if err := r.prefetch(ctx, from, n); err != nil {
		return nil, err
	}
	for v := n; ; v-- {
		at, err := r.partition(ctx, op, part, v)
		if err != nil {
			return nil, err
		}
		file := at.file(op, part, v)
		if len(snapshots) > 0 && snapshots[0].Version == v {
			s := snapshots[0]
			s.Time, s.Chain, s.Keys = at.time, at.Chain, at.Keys
			f.Start = &s
			break
		}
		if at.Base && !sabotage.On("base-is-a-delta") {
			f.Start = &file
			break
		}
		if at.File != "" {
			f.Deltas = append(f.Deltas, file)
		}
		if v <= op.Since {
			break
		}
		if v-1 < floor {
			return nil, r.noStart(ctx, op, part, n, bad)
		}
	}
	slices.Reverse(f.Deltas)
	var prev statefile.Sum
	if f.Start != nil {
		prev = f.Start.Chain
	}
	for i := range f.Deltas {
		f.Deltas[i].Prev, prev = prev, f.Deltas[i].Chain
	}
	return f, nil
}

// noStart is the error of a version that cannot be loaded.
func (r *Root) noStart(ctx context.Context, op *Operator, part int, n uint64, bad []string) error {
	e := &NoStartError{Operator: op.Name, Partition: part, Version: n, Folder: StateFolder(op.Number, op.Layout, part), Floor: r.floor(), Bad: bad}
	later, err := r.snapshots(ctx, op, part, math.MaxUint64, bad)
	if err != nil {
		return err
	}
	for _, s := range later { // the newest first
		if s.Version > n {
			e.Next = s.Version
		}
	}
	return e
}

// entry is what a commit says of a partition, with its batch time.
type entry struct {
	PartitionCommit
	time int64
}

func (r *Root) partition(ctx context.Context, op *Operator, part int, n uint64) (entry, error) {
	c, err := r.Commit(ctx, n)
	if err != nil {
		return entry{}, err
	}
	oc := c.Operator(op.Number)
	if oc == nil || oc.Layout != op.Layout || part < 0 || part >= len(oc.Partitions) || len(oc.Partitions) != op.Partitions {
		return entry{}, &CorruptError{Path: CommitName(n), Number: n, Reason: fmt.Sprintf(
			"it does not have partition %d of operator %q in layout %d with %d partitions, as its metadata says", part, op.Name, op.Layout, op.Partitions)}
	}
	return entry{oc.Partitions[part], c.Time}, nil
}

func (e *entry) file(op *Operator, part int, v uint64) File {
	var n StateName
	n.parseBase(e.File)
	return File{Name: StateFolder(op.Number, op.Layout, part) + e.File, Term: n.Term, Version: v, Time: e.time,
		Kind: statefile.Delta, Base: e.Base, Chain: e.Chain, Checksum: e.Checksum, Size: e.Size, Keys: e.Keys}
}

// snapshots lists those that version n may start from, the best first. Whether
// one is good, its chain hash tells when it is read.
func (r *Root) snapshots(ctx context.Context, op *Operator, part int, n uint64, bad []string) ([]File, error) {
	folder := StateFolder(op.Number, op.Layout, part)
	list, err := r.store.List(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: list %s: %w", folder, err)
	}
	floor := r.floor()
	var found []File
	for _, o := range list {
		s, ok := ParseStateName(o.Name)
		if !ok || s.Kind != statefile.Snapshot || s.Version > n || s.Version < max(op.Since, floor) || slices.Contains(bad, o.Name) {
			continue
		}
		found = append(found, File{Name: o.Name, Term: s.Term, Version: s.Version, Kind: s.Kind, Size: o.Size})
	}
	slices.SortFunc(found, func(a, b File) int {
		return cmp.Or(cmp.Compare(b.Version, a.Version), cmp.Compare(b.Term, a.Term))
	})
	return found, nil
}

// floor is that of the newest commit that was seen.
func (r *Root) floor() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newest == nil {
		return r.least
	}
	return max(r.least, r.newest.Floor)
}

// prefetch reads the commits from to n side by side: on an object store one
// after the other would take most of a load.
func (r *Root) prefetch(ctx context.Context, from, n uint64) error {
	const readers = 16
	r.fetching.Lock() // the next partition's load finds them in the cache
	defer r.fetching.Unlock()
	var wg sync.WaitGroup
	errs := make([]error, readers)
	from = max(from, n-min(n, cachedCommits)+1)
	for i := range readers {
		first := from + uint64(i)
		if first > n {
			break
		}
		wg.Go(func() {
			for v := first; v <= n && errs[i] == nil; v += readers {
				_, errs[i] = r.Commit(ctx, v)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
