package milltool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/sabotage"
)

// newestError says that nobody can tell which version is the newest.
type newestError struct {
	err error
	// readable is the newest version that can be read, 0 if none can.
	readable uint64
	// versions says that the command can read another version than the newest.
	versions bool
}

// Error is what is the matter.
func (e *newestError) Error() string { return e.err.Error() }

// Unwrap gives the same.
func (e *newestError) Unwrap() error { return e.err }

func (e *newestError) nextStep() string {
	switch {
	case e.readable == 0:
		return "no version can be read: `verify` lists all damage"
	case !e.versions:
		return "`versions` lists the versions that can be read; `get`, `dump`, `diff` and `fork` take their numbers"
	}
	return fmt.Sprintf("-version %d reads the newest version that can be read; `versions` lists them all", e.readable)
}

// unknown is the error of a command that needs the newest version.
func (v *view) unknown(versions bool) error {
	e := &newestError{err: v.damage, versions: versions}
	if v.newest != nil {
		e.readable = v.newest.Epoch
	}
	return e
}

// past gives the commit of a version that was asked for, of a root whose newest one
// cannot be told: it stands by itself, as nothing is ever replaced.
func (v *view) past(ctx context.Context, want versionFlag) (*checkpoint.Commit, error) {
	if !want.given || v.newest == nil {
		return nil, v.unknown(true)
	}
	oldest, err := v.oldest(ctx)
	if err != nil {
		return nil, err
	}
	if want.n < oldest {
		return nil, fmt.Errorf("version %d is not kept in %s: it keeps %d and later ones", want.n, v.dir, oldest)
	}
	if err := v.noHole(ctx, want.n); err != nil {
		return nil, err
	}
	commit, err := v.root.Commit(ctx, want.n)
	switch {
	case errors.Is(err, fs.ErrNotExist) && want.n > v.newest.Epoch:
		return nil, fmt.Errorf("there is no version %d in %s: %w", want.n, v.dir, v.unknown(true))
	case err != nil:
		return nil, err
	}
	v.notice(checkpoint.Notice{Text: fmt.Sprintf("version %d is read by its own commit, as the newest one is not known: %v", want.n, v.damage)})
	return commit, nil
}

// noHole refuses a version above which commits are missing, unless the newest one is
// known and keeps it: a clean-up after the newest may have taken them, and then
// nothing that lies below is believed.
func (v *view) noHole(ctx context.Context, n uint64) error {
	var gap *checkpoint.GapError
	if errors.As(v.damage, &gap) && gap.Missing != n || sabotage.On("hole-read-past") {
		return nil
	}
	nums, err := v.listed(ctx)
	for _, there := range nums {
		switch {
		case there < n || there > v.newest.Epoch:
		case there > n:
			return &checkpoint.GapError{Missing: n, Floor: v.newest.Floor, Newest: v.newest.Epoch}
		default:
			n++
		}
	}
	return err
}

// oldestListed is the oldest version of a root whose newest one cannot be told. A
// clean-up after the newest may have gone past what older commits keep: so the first
// that is there counts, unless the newest can be read and commits are missing.
func (v *view) oldestListed(ctx context.Context) (uint64, error) {
	if gap := (*checkpoint.GapError)(nil); errors.As(v.damage, &gap) {
		return max(gap.Floor, 1), nil
	}
	nums, err := v.listed(ctx)
	if err != nil || len(nums) == 0 {
		return 0, err
	}
	return nums[0], nil
}

// listed lists the commits that are there, from the floor on that is known.
func (v *view) listed(ctx context.Context) ([]uint64, error) {
	nums, err := v.root.Listed(ctx)
	for err == nil && v.newest != nil && len(nums) > 0 && nums[0] < v.newest.Floor {
		nums = nums[1:]
	}
	return nums, err
}

// kept lists the versions that are kept; those that are there, where the newest one
// cannot be told.
func (v *view) kept(ctx context.Context) (nums []uint64, err error) {
	if v.damage != nil {
		return v.listed(ctx)
	}
	oldest, err := v.oldest(ctx)
	for n := oldest; err == nil && n <= v.newest.Epoch; n++ { // without a gap, says Newest
		nums = append(nums, n)
	}
	return nums, err
}

// hole is the fault of commits that are missing: from a number on, up to another one.
func (v *view) hole(from, to uint64) error {
	if to == from+1 {
		return fmt.Errorf("%w: %s", checkpoint.ErrGap, checkpoint.CommitName(from))
	}
	return fmt.Errorf("%w: %s and all up to %s", checkpoint.ErrGap, checkpoint.CommitName(from), checkpoint.CommitName(to-1))
}
