package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"slices"
)

// Listed lists the numbers of all commits that lie in the root, ascending, whether
// they are believed or not, and reads none. Errors: those of the store.
func (r *Root) Listed(ctx context.Context) ([]uint64, error) {
	return r.numbers(ctx, commitFolder)
}

// Readable gives the newest commit whose document is whole, nil if there is none.
// It is for those who look at a root whose Newest fails: without the newest commit
// nobody knows how old a version the root still keeps, nor what is in force, so a
// run must not start from what this gives. Errors: those of the store.
func (r *Root) Readable(ctx context.Context) (*Commit, error) {
	nums, err := r.Listed(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range slices.Backward(nums) {
		c, err := r.Commit(ctx, n)
		switch {
		case err == nil:
			r.mu.Lock()
			r.least = max(r.least, c.Floor)
			r.mu.Unlock()
			return c, nil
		case !unreadable(err) && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return nil, nil
}

// unreadable tells errors of Newest that do not come from the store.
func unreadable(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrFormat) || errors.Is(err, ErrGap)
}

// ReadPast is [Root.Read] for those who may be content with an older version. Where
// Newest fails because its document cannot be read, or because commits are missing
// below it, do is called all the same: with what Newest says, and with the commit
// that Readable gives in its place.
func (r *Root) ReadPast(ctx context.Context, do func(newest *Commit, damage error) error) error {
	return r.again(ctx, func() (*Commit, error) {
		c, err := r.Newest(ctx)
		var damage error
		if unreadable(err) {
			damage = err
			c, err = r.Readable(ctx)
		}
		if err == nil {
			err = do(c, damage)
		}
		return c, err
	})
}
