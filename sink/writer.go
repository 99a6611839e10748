package sink

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/guard"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/zeebo/xxh3"
)

// Writer is one unit's output of one epoch, as the engine hands it to
// checkpoint.Session. It is used from one goroutine.
//
//	Prepare(dry) → Sum       any number of times; no effect at all
//	Prepare(write) → Sum → Commit | Abort
//
// After Abort, or a Commit that failed, Prepare may be called again; it writes
// the same rows.
type Writer interface {
	// Unit is the unit that the writer writes to.
	Unit() Unit
	// Prepare gives the sum of the output, and, unless dry, writes it all in a
	// new transaction of the unit, aborting one that is open. After an error no
	// transaction is open: it is aborted as Abort does, though ctx has ended.
	Prepare(ctx context.Context, dry bool) (Sum, error)
	// Commit commits what Prepare wrote. An error without a name in the package
	// comment leaves the transaction open: Commit may be called again with the
	// same memory.
	Commit(ctx context.Context, m Memory) error
	// Abort gives up an open transaction, if there is one. It is not cut short by the
	// end of ctx: it then has five seconds more.
	Abort(ctx context.Context) error
}

// Output is one output's rows of one epoch, made by [Bind].
type Output struct {
	name, target string
	unit         Unit
	parts        int
	rows         func(ctx context.Context, part int) Rows
}

// Bind gives the rows of one epoch to a sink. name is that of the output in the
// job; rows calls yield for each row of a partition, in order. It is called from
// several goroutines at once for different partitions, and more than once for
// the same one, and must give the same rows each time.
func Bind[T any](s Sink[T], name string, partitions int, rows func(ctx context.Context, partition int, yield func(T) error) error) Output {
	return Output{name: name, target: s.Target, unit: s.Unit, parts: partitions, rows: func(ctx context.Context, part int) Rows {
		return func(yield func([]byte) error) error {
			var buf []byte
			n := 0
			return rows(ctx, part, func(row T) error {
				b, err := encode(s.Encode, buf[:0], row)
				if err != nil {
					return &EncodeError{Output: name, Partition: part, Row: n, Err: err}
				}
				buf = b
				n++
				return yield(b)
			})
		}
	}}
}

// encode makes a panic of the user's function an error, which is final: another
// try would panic again.
func encode[T any](f func([]byte, T) ([]byte, error), buf []byte, row T) (b []byte, err error) {
	defer guard.Catch(&err)
	return f(buf, row)
}

// Parallel runs task(0) … task(n-1), side by side if it likes, and returns the
// first error in the order of tasks, after all that began have ended.
type Parallel func(ctx context.Context, n int, task func(ctx context.Context, i int) error) error

// NewWriter makes the writer of a unit for an epoch. outputs are all those of
// the job that write to the unit, always in the same order, and may be none. run
// runs the parts; nil runs them one after the other.
func NewWriter(u Unit, epoch uint64, outputs []Output, run Parallel) (Writer, error) {
	w := &writer{unit: u, epoch: epoch, run: run}
	for _, o := range outputs {
		if o.unit != u {
			return nil, fmt.Errorf("sink %s: output %s: %w: it writes to another unit", u.Name(), o.name, ErrMisuse)
		}
		for i := range o.parts {
			w.parts = append(w.parts, part{Part{Output: o.name, Target: o.target, Index: i, Of: o.parts}, o.rows})
		}
	}
	if run == nil {
		w.run = inTurn
	}
	return w, nil
}

type part struct {
	Part
	rows func(ctx context.Context, part int) Rows
}

type writer struct {
	unit  Unit
	epoch uint64
	parts []part
	run   Parallel
	tx    Tx
}

func inTurn(ctx context.Context, n int, task func(context.Context, int) error) error {
	for i := range n {
		if err := task(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) Unit() Unit { return w.unit }

func (w *writer) Prepare(ctx context.Context, dry bool) (Sum, error) {
	sums := make([]Sum, len(w.parts))
	if !dry || sabotage.On("sink-dry-run-writes") {
		if err := w.Abort(ctx); err != nil {
			return Sum{}, err
		}
		tx, err := w.unit.Begin(ctx, w.epoch)
		if err != nil {
			return Sum{}, fmt.Errorf("sink %s: begin epoch %d: %w", w.unit.Name(), w.epoch, err)
		}
		w.tx = tx
	}
	err := w.run(ctx, len(w.parts), func(ctx context.Context, i int) (err error) {
		sums[i], err = w.write(ctx, w.parts[i], dry)
		return err
	})
	if err != nil {
		if !dry {
			err = errors.Join(err, w.Abort(ctx))
		}
		return Sum{}, err
	}
	h := xxh3.New()
	for i, p := range w.parts {
		_, _ = h.Write(p.place())
		if !sabotage.On("sink-sum-without-rows") { // CE9
			_, _ = h.Write(sums[i][:])
		}
	}
	return h.Sum128().Bytes(), nil
}

// place is what the sum says of a part besides its rows.
func (p Part) place() []byte {
	var b []byte
	for _, s := range []string{p.Output, p.Target} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(p.Of))
	return binary.AppendUvarint(b, uint64(p.Index))
}

func (w *writer) write(ctx context.Context, p part, dry bool) (Sum, error) {
	c := counter{rows: p.rows(ctx, p.Index)}
	var err error
	if dry && !sabotage.On("sink-dry-run-writes") {
		err = c.read(func([]byte) error { return nil })
	} else {
		err = w.tx.Write(ctx, p.Part, c.read)
	}
	switch {
	case err != nil:
		return Sum{}, fmt.Errorf("sink %s: epoch %d: output %s: partition %d: %w", w.unit.Name(), w.epoch, p.Output, p.Index, err)
	case c.passes == 0:
		return Sum{}, fmt.Errorf("sink %s: epoch %d: output %s: partition %d: %w: Write did not read its rows to the end",
			w.unit.Name(), w.epoch, p.Output, p.Index, ErrMisuse)
	}
	return c.sum, nil
}

func (w *writer) Commit(ctx context.Context, m Memory) error {
	if w.tx == nil || m.Epoch != w.epoch {
		return fmt.Errorf("sink %s: commit of epoch %d by the writer of epoch %d: %w", w.unit.Name(), m.Epoch, w.epoch, ErrMisuse)
	}
	if err := w.tx.Commit(ctx, m); err != nil {
		return fmt.Errorf("sink %s: commit epoch %d: %w", w.unit.Name(), w.epoch, err)
	}
	w.tx = nil
	return nil
}

// abortTimeout is how long an abort goes on after its context has ended.
const abortTimeout = 5 * time.Second

func (w *writer) Abort(ctx context.Context) error {
	if w.tx == nil {
		return nil
	}
	tx := w.tx
	w.tx = nil
	// A run that is stopped in the midst of a write has no other call left: what it leaves
	// open, others wait for.
	if !sabotage.On("sink-abort-cancelled") {
		var done context.CancelFunc
		ctx, done = clock.Outlive(ctx, abortTimeout)
		defer done()
	}
	if err := tx.Abort(ctx); err != nil {
		return fmt.Errorf("sink %s: abort epoch %d: %w", w.unit.Name(), w.epoch, err)
	}
	return nil
}

const errUnsteady = permanentError("rows differ when they are read again: Encode must depend on its argument alone")

// counter adds up the rows that pass, and sees that each pass gives the same.
type counter struct {
	rows   Rows
	passes int
	sum    Sum
}

func (c *counter) read(yield func([]byte) error) error {
	h := xxh3.New()
	n := uint64(0)
	var b [8]byte
	err := c.rows(func(row []byte) error {
		binary.LittleEndian.PutUint64(b[:], uint64(len(row)))
		if !sabotage.On("sink-sum-without-bounds") {
			_, _ = h.Write(b[:])
		}
		_, _ = h.Write(row)
		n++
		return yield(row)
	})
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(b[:], n)
	_, _ = h.Write(b[:])
	sum := Sum(h.Sum128().Bytes())
	if c.passes > 0 && sum != c.sum {
		return errUnsteady
	}
	c.passes++
	c.sum = sum
	return nil
}
