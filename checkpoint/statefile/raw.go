package statefile

import (
	"errors"
	"fmt"
	"io"
)

// RawEncoder writes files from bytes, without Go types: canonical keys and
// encoded states, as [Block] gives them. Given the entries of an [Encoder]'s
// file in the same order it writes the same bytes. It is reused from file to
// file, keeps its buffers, and belongs to one goroutine at a time. The zero
// value is ready.
type RawEncoder struct {
	out  writer
	rows rows
	open bool
}

// Begin begins a file. All of info is the caller's, the codecs too. The writer
// is used as by [Encoder].
func (e *RawEncoder) Begin(w io.Writer, info Info) error {
	e.rows.reset()
	err := e.out.begin(w, info)
	e.open = err == nil
	return err
}

// Put writes an entry; state is not looked at where t is a deadline alone. The
// bytes are copied. After an error the file cannot be ended. Errors:
// ErrTooLarge, those of the writer.
func (e *RawEncoder) Put(key, state []byte, t int64) error {
	if err := e.row(key, 0); err != nil {
		return err
	}
	r := &e.rows
	r.times = append(r.times, t)
	if !e.out.info.Deadlines || t >= 0 {
		r.states = append(r.states, state...)
		r.sizes = append(r.sizes, uint64(len(state)))
	}
	return e.flush(false)
}

// Remove writes a tombstone; deltas only. Errors as Put.
func (e *RawEncoder) Remove(key []byte) error {
	if e.open && e.out.info.Kind != Delta {
		e.open = false
		return errors.New("statefile: only a delta has tombstones")
	}
	if err := e.row(key, 1); err != nil {
		return err
	}
	e.rows.tombs++
	return e.flush(false)
}

func (e *RawEncoder) row(key []byte, tombstone uint64) error {
	if !e.open {
		return errClosed
	}
	r := &e.rows
	r.keys = append(r.keys, key...)
	r.lens = append(r.lens, uint64(len(key))<<1|tombstone)
	r.n++
	return nil
}

func (e *RawEncoder) flush(last bool) error {
	r := &e.rows
	if !r.full() && !(last && r.n > 0) {
		return nil
	}
	if size := len(r.keys) + len(r.states) + blockBytes; size > maxBlock {
		e.open = false
		return fmt.Errorf("%w: operator %q has a block of %d bytes", ErrTooLarge, e.out.info.Operator, size)
	}
	if err := e.out.frame(r.block(&e.out.info), r.n, r.tombs); err != nil {
		e.open = false
		return err
	}
	r.reset()
	return nil
}

// End writes the last block and the footer, and tells what was written.
func (e *RawEncoder) End() (Summary, error) {
	if !e.open {
		return Summary{}, errClosed
	}
	if err := e.flush(true); err != nil {
		return Summary{}, err
	}
	e.open = false
	return e.out.end()
}
