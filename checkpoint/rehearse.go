package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/statemill/statemill/internal/guard"
	"github.com/statemill/statemill/internal/sabotage"
)

// A change runs functions of the user over every row: migrations, and partitioners
// that only the program has. Once it is planned only a program with the same
// functions can go on, so they are tried on every row before anything is written:
// one that fails refuses the start, and the old program still fits (P1).

// rehearseFirst tries the change that the job asks for, if it comes first; the
// reason of a refusal is kept. It only reads, and is called with the lock.
func (s *Session) rehearseFirst(ctx context.Context) (ok bool, err error) {
	if !s.fit.change {
		return true, nil
	}
	err = s.root.Read(ctx, func(c *Commit) error {
		f, err := s.judge(ctx, s.root, c)
		if err != nil || !f.change || c == nil {
			return err
		}
		// What waits is finished first, and Change tries before it plans.
		if waits, err := s.root.there(ctx, PlanName(c.Epoch+1)); err != nil || waits {
			return err
		}
		from, err := s.root.Metadata(ctx, c.Metadata)
		if err != nil {
			return err
		}
		return s.rehearse(ctx, c, from, f.after)
	})
	if errors.Is(err, ErrRefused) {
		s.failure = err
		return false, nil
	}
	return err == nil, err
}

// rehearse makes the change from a version and throws away what comes of it. It
// holds one partition at a time.
func (s *Session) rehearse(ctx context.Context, c *Commit, from *Metadata, after []Operator) error {
	if s.rehearsed == c.Epoch || sabotage.On("change-not-rehearsed") {
		return nil
	}
	steps, err := s.steps(from, &Metadata{Operators: after}, c.Epoch+1)
	if err != nil {
		return &RefusedError{Reasons: []error{err}}
	}
	for i := range steps {
		r := &steps[i]
		for p := 0; p < r.old.Partitions && (r.foreign || r.convert != nil); p++ {
			_, rows, err := loadRows(ctx, s.root, r.old.Number, p, c.Epoch, nil)
			if err == nil {
				err = r.try(rows)
			}
			if err != nil {
				return fmt.Errorf("checkpoint: change of operator %q, partition %d: %w", r.now.Name, p, err)
			}
		}
	}
	s.rehearsed = c.Epoch
	return nil
}

// try calls the user's functions for all rows of a partition.
func (r *rewrite) try(rows map[string]value) error {
	var buf []byte
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		_, err := r.to(k)
		if err == nil {
			buf, err = r.stateOf(buf[:0], k, rows[k].state)
		}
		if err != nil {
			return &RefusedError{Reasons: []error{err}}
		}
	}
	return nil
}

// to gives the partition of a key in the new layout; 0 if partitions stay.
func (r *rewrite) to(key string) (part int, err error) {
	if r.place == nil {
		return 0, nil
	}
	err = guarded(func() (err error) {
		part, err = r.place([]byte(key), r.now.Partitions)
		return err
	})
	if err == nil && (part < 0 || part >= r.now.Partitions) {
		err = fmt.Errorf("partition %d of %d", part, r.now.Partitions)
	}
	if err != nil {
		return 0, &permanent{fmt.Errorf("partitioner %q cannot place key %s: %w", r.now.Partitioner, keyText(r.now, key), err)}
	}
	return part, nil
}

// stateOf appends the new form of a key's state to dst; nothing if states stay, or
// the key has none.
func (r *rewrite) stateOf(dst []byte, key string, state []byte) (_ []byte, err error) {
	if r.convert == nil || state == nil {
		return dst, nil
	}
	err = guarded(func() (err error) {
		dst, err = r.convert(dst, state)
		return err
	})
	if err != nil {
		return nil, &permanent{fmt.Errorf("state of key %s: %w", keyText(r.now, key), err)}
	}
	return dst, nil
}

// guarded makes a panic of a user's function an error, with its stack.
func guarded(call func() error) (err error) {
	defer guard.Catch(&err)
	return call()
}
