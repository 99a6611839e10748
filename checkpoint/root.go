package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// Root reads a root. It takes no lock and writes nothing. It keeps documents
// that it has read, as they never change. Its methods may be called from any
// goroutine; what they return is shared and must not be changed.
type Root struct {
	store vfs.Store

	fetching sync.Mutex
	mu       sync.Mutex
	newest   *Commit // the newest that was seen
	least    uint64  // a floor that was seen without the newest
	commits  cache[Commit]
	plans    cache[Plan]
	metadata cache[Metadata]
}

// OpenRoot returns a reader of a root; nothing is touched before the first call.
func OpenRoot(store vfs.Store) *Root { return &Root{store: store} }

// Store is what the root reads.
func (r *Root) Store() vfs.Store { return r.store }

// How many documents are kept: a load walks along some hundred commits, once for
// each partition; of others the newest are wanted.
const (
	cachedCommits = 512
	cachedOthers  = 16
)

// cache keeps the documents with the greatest numbers.
type cache[D any] struct{ byNumber map[uint64]*D }

func (c *cache[D]) put(n uint64, d *D) {
	if c.byNumber == nil {
		c.byNumber = map[uint64]*D{}
	}
	c.byNumber[n] = d
	most := cachedOthers
	if _, ok := any(d).(*Commit); ok {
		most = cachedCommits
	}
	if len(c.byNumber) <= most {
		return
	}
	least := n
	for k := range c.byNumber {
		least = min(least, k)
	}
	delete(c.byNumber, least)
}

// read gets a document from the cache or the store.
func read[D any, P interface {
	*D
	document
}](ctx context.Context, r *Root, c *cache[D], folder string, n uint64) (*D, error) {
	r.mu.Lock()
	d := c.byNumber[n]
	r.mu.Unlock()
	if d != nil {
		return d, nil
	}
	d, err := readFresh[D, P](ctx, r.store, folder, n)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.put(n, d)
	return d, nil
}

// readFresh gets a document from the store.
func readFresh[D any, P interface {
	*D
	document
}](ctx context.Context, store vfs.Store, folder string, n uint64) (*D, error) {
	name := numbered(folder, n)
	b, err := store.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: read %s: %w", name, err)
	}
	d := new(D)
	if err := decode(b, name, n, P(d)); err != nil {
		return nil, err
	}
	return d, nil
}

// Commit gives commits/n; the error answers errors.Is for fs.ErrNotExist if
// there is none. Others: *CorruptError, *FormatError, those of the store.
func (r *Root) Commit(ctx context.Context, n uint64) (*Commit, error) {
	return read(ctx, r, &r.commits, commitFolder, n)
}

// Plan gives offsets/n; errors as Commit.
func (r *Root) Plan(ctx context.Context, n uint64) (*Plan, error) {
	return read(ctx, r, &r.plans, planFolder, n)
}

// Metadata gives metadata/seq; errors as Commit.
func (r *Root) Metadata(ctx context.Context, seq uint64) (*Metadata, error) {
	return read(ctx, r, &r.metadata, metadataFolder, seq)
}

// Owner gives the newest owner, nil if there is none. It lists the owners.
func (r *Root) Owner(ctx context.Context) (*Owner, error) {
	terms, err := r.numbers(ctx, ownerFolder)
	if err != nil || len(terms) == 0 {
		return nil, err
	}
	return readFresh[Owner](ctx, r.store, ownerFolder, terms[len(terms)-1])
}

// numbers lists the numbers in a folder, ascending. Names that are no number
// are none of ours.
func (r *Root) numbers(ctx context.Context, folder string) ([]uint64, error) {
	list, err := r.store.List(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: list %s: %w", folder, err)
	}
	var nums []uint64
	for _, o := range list {
		if n, ok := parseNumber(strings.TrimPrefix(o.Name, folder)); ok {
			nums = append(nums, n)
		}
	}
	slices.Sort(nums)
	return nums, nil
}

// Newest gives the newest commit, nil if there is none. The first call lists
// the commits; later ones probe for those that follow. Errors: *CorruptError,
// *FormatError, *GapError, those of the store.
func (r *Root) Newest(ctx context.Context) (*Commit, error) {
	r.mu.Lock()
	c := r.newest
	r.mu.Unlock()
	if c != nil {
		if next, err := r.follow(ctx, c); next != nil || err != nil {
			return next, err
		}
	}
	c, _, err := r.list(ctx)
	return c, err
}

// follow goes on from a commit to the newest; nil if the commit is gone, as
// then those after it may be too, and a list must tell.
func (r *Root) follow(ctx context.Context, c *Commit) (*Commit, error) {
	for {
		next, err := r.Commit(ctx, c.Epoch+1)
		if err == nil {
			c = r.saw(next)
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		switch _, err := r.store.Stat(ctx, CommitName(c.Epoch)); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("checkpoint: probe %s: %w", CommitName(c.Epoch), err)
		}
		return c, nil
	}
}

// saw keeps the newest commit that was seen and gives it.
func (r *Root) saw(c *Commit) *Commit {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newest == nil || c.Epoch > r.newest.Epoch {
		r.newest = c
	}
	return r.newest
}

// Commits lists the numbers of the commits that are believed, ascending: from
// the floor of the newest one on. Errors as Newest.
func (r *Root) Commits(ctx context.Context) ([]uint64, error) {
	_, nums, err := r.list(ctx)
	return nums, err
}

// list finds the newest commit by a list. Nothing below its floor is believed
// (P5); a hole above it is an error. A run may delete while the list is made, so
// a hole counts if there has been no newer commit since.
func (r *Root) list(ctx context.Context) (*Commit, []uint64, error) {
	for before := uint64(0); ; {
		nums, err := r.numbers(ctx, commitFolder)
		if err != nil || len(nums) == 0 {
			return nil, nil, err
		}
		c, err := r.Commit(ctx, nums[len(nums)-1])
		if err != nil {
			return nil, nil, err
		}
		first := max(c.Floor, 1)
		at, _ := slices.BinarySearch(nums, first)
		nums = nums[at:]
		missing := uint64(0)
		for i, n := range nums {
			if want := first + uint64(i); n != want && !sabotage.On("gap-not-seen") {
				missing = want
				break
			}
		}
		switch {
		case missing == 0:
			return r.saw(c), nums, nil
		case c.Epoch == before:
			return nil, nil, &GapError{Missing: missing, Floor: c.Floor, Newest: c.Epoch}
		}
		before = c.Epoch
	}
}

// OperatorAt gives an operator as version n has it, by its number; an
// fs.ErrNotExist if it has none such. Errors as Commit.
func (r *Root) OperatorAt(ctx context.Context, number int, n uint64) (*Operator, error) {
	c, err := r.Commit(ctx, n)
	if err != nil {
		return nil, err
	}
	m, err := r.Metadata(ctx, c.Metadata)
	if err != nil {
		return nil, err
	}
	if op := m.operator(number); op != nil {
		return op, nil
	}
	return nil, fmt.Errorf("checkpoint: version %d has no operator of number %d: %w", n, number, fs.ErrNotExist)
}

// rose reports whether the floor has risen since a commit was read: what had been
// listed below it then may have been gone already.
func (r *Root) rose(ctx context.Context, c *Commit) bool {
	now, err := r.Newest(ctx)
	return err == nil && c != nil && now != nil && now.Floor > c.Floor
}

// restarts is how often a reader starts again from the newest commit.
const restarts = 5

// Read calls do with the newest commit, nil if there is none. If a file vanishes
// under it (the error answers errors.Is for fs.ErrNotExist, or it is ErrNoStart
// and the floor has risen), because a run's clean-up went past it, it starts again
// from the then newest commit, at most 5 times; then the error is ErrVanished.
func (r *Root) Read(ctx context.Context, do func(newest *Commit) error) error {
	return r.again(ctx, func() (*Commit, error) {
		c, err := r.Newest(ctx)
		if err == nil {
			err = do(c)
		}
		return c, err
	})
}

// again calls do until no file vanishes under it. do gives what it began from.
func (r *Root) again(ctx context.Context, do func() (*Commit, error)) error {
	var err error
	for range 1 + restarts {
		var c *Commit
		if c, err = do(); err == nil || !r.gone(ctx, c, err) {
			return err
		}
	}
	return fmt.Errorf("checkpoint: read %d times: %w: %w", 1+restarts, ErrVanished, err)
}

// gone reports whether an error of a reading that began from c is that of a clean-up
// which has gone past it.
func (r *Root) gone(ctx context.Context, c *Commit, err error) bool {
	if sabotage.On("vanished-is-an-error") {
		return false
	}
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoStart) && r.rose(ctx, c)
}
