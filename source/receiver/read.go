package receiver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/statemill/statemill/source"
)

// Plan implements source.Source: what is durable, from the last plan's end on.
func (s *Source[T]) Plan(ctx context.Context, l source.Limits) (source.Plan, error) {
	o := s.open.Load()
	if o == nil {
		return source.Plan{}, fmt.Errorf("%v: %w", s, source.ErrNotOpen)
	}
	if err := ctx.Err(); err != nil {
		return source.Plan{}, err
	}
	_, next := o.j.bounds()
	n, err := s.fitting(ctx, o.j, o.pos, next, l.Bytes)
	if err != nil {
		return source.Plan{}, err
	}
	o.health.planned(o.pos, next, s.clock().Now())
	n = source.Share([]int64{n}, l)[0]
	r := source.Range{Partition: Partition, From: o.pos, Until: o.pos + n}
	o.pos = r.Until
	return source.Plan{Ranges: []source.Range{r}}, nil
}

// Read implements source.Source.
func (s *Source[T]) Read(ctx context.Context, r source.Range, emit func(offset int64, v T) error) error {
	o := s.open.Load()
	if o == nil {
		return fmt.Errorf("%v: %w", s, source.ErrNotOpen)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	oldest, next := o.j.bounds()
	if r.Partition != Partition || r.From < oldest || r.From > r.Until || r.Until > next {
		return &source.RangeError{Source: s.String(), Range: r, Why: fmt.Sprintf("the log holds %q, offsets [%d, %d)", Partition, oldest, next)}
	}
	for _, p := range o.j.pieces(r.From, r.Until) {
		if err := s.read(ctx, p, emit); err != nil {
			return err
		}
	}
	if r.From < r.Until {
		o.health.moved(s.clock().Now())
	}
	return nil
}

func (s *Source[T]) read(ctx context.Context, p piece, emit func(offset int64, v T) error) error {
	return s.blocks(ctx, p, func(b *block) error {
		return b.records(func(offset int64, record []byte) error {
			if offset < p.from || offset >= p.end {
				return nil
			}
			v, err := s.c.Decode(record)
			if err != nil {
				return &downError{fmt.Errorf("%v: offset %d: %w", s, offset, err)}
			}
			if err := emit(offset, v); err != nil {
				return &downError{err}
			}
			return nil
		})
	})
}

// downError is what became of records, in contrast to what is wrong with their block.
type downError struct{ error }

// blocks reads the blocks of a piece one after the other. An error of f is one of the
// block, unless it is a downError.
func (s *Source[T]) blocks(ctx context.Context, p piece, f func(b *block) error) error {
	file, err := s.fs.Open(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return &DamagedError{Path: p.path, Offset: p.from, Reason: "it is gone"}
	}
	if err != nil {
		return err
	}
	defer file.Close()
	var buf []byte
	at := p.at
	for next := p.from; next < p.end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, grown, ok, err := p.layout.readBlock(file, at, p.size, buf)
		if err != nil {
			return err
		}
		if !ok {
			return changed(p.path, at, next)
		}
		buf, at = grown, b.end
		err = f(&b)
		if down, ok := err.(*downError); ok {
			return down.error
		}
		if err != nil {
			return &DamagedError{Path: p.path, Offset: next, Reason: err.Error()}
		}
		next = b.first + int64(b.count)
	}
	return nil
}

// Committed implements source.Source: files that hold only records of earlier
// plans go; those of the last plan can still be read by the next run.
func (s *Source[T]) Committed(ctx context.Context, p source.Plan) error {
	o := s.open.Load()
	if o == nil {
		return fmt.Errorf("%v: %w", s, source.ErrNotOpen)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r, ok := rangeOf(&p)
	if !ok {
		return nil
	}
	o.pos = max(o.pos, r.Until)
	o.health.next.Store(r.Until)
	return o.j.forget(r.From)
}

// Done implements source.Bounded: the receiver has ended by itself, and all that
// it stored is in a plan.
func (s *Source[T]) Done() bool {
	o := s.open.Load()
	if o == nil {
		return false
	}
	select {
	case <-o.done:
	default:
		return false
	}
	_, next := o.j.bounds()
	return o.ended && o.pos == next
}

// Locate implements source.Locator.
func (s *Source[T]) Locate(_ string, offset int64) string {
	return fmt.Sprintf("%v, record %d", s, offset)
}

// lastStore is how long a receiver may still store what it has in hand when the source
// is closed.
const lastStore = time.Second

// Close stops the receiver and waits for it. What it has stored stays. It may still
// store what it had taken in before, for a second and as far as the log has room.
func (s *Source[T]) Close() error {
	o := s.open.Load()
	if o == nil {
		return nil
	}
	o.cancel()
	o.j.drain()
	bound, end := context.WithTimeout(context.Background(), lastStore)
	defer end()
	select {
	case <-o.done:
	case <-bound.Done(): // one that does not look at its context, but perhaps at errors
	}
	// The rest of a group that is being written is still written.
	o.j.shut()
	<-o.done
	s.open.Store(nil)
	return errors.Join(o.j.close(), o.unlock())
}
