package statefile

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/statemap"
)

// Encoder writes files of keys K and states S. It is reused from file to file,
// keeps its buffers, and belongs to one goroutine at a time.
//
// Delta and Snapshot write a whole file from a version. Begin, then Put and
// Remove for each entry, then End, write one from anywhere else. An encoder
// whose call failed can begin the next file; what the failed one left behind
// is for the caller to delete. The writer that was given is neither synced nor
// closed; it gets two writes per block and needs no buffering.
type Encoder[K comparable, S any] struct {
	key   *codec.Key[K]
	state codec.Codec[S]
	keyID string
	out   writer
	rows  rows
	open  bool
	err   error // the first failure since Begin
}

// NewEncoder makes an encoder from the encodings of keys and states.
func NewEncoder[K comparable, S any](key *codec.Key[K], state codec.Codec[S]) *Encoder[K, S] {
	return &Encoder[K, S]{key: key, state: state, keyID: KeyID[K]()}
}

// errClosed is a caller's fault.
var errClosed = errors.New("statefile: no file was begun")

// Begin begins a file. The codecs of info are filled in.
func (e *Encoder[K, S]) Begin(w io.Writer, info Info) error {
	info.KeyCodec, info.StateCodec = e.keyID, e.state.ID()
	e.rows.reset()
	e.err = e.out.begin(w, info)
	e.open = e.err == nil
	return e.err
}

// Put writes an entry: a state with the time of its last update, or with a
// deadline (see Info.Deadlines). Keys are not checked for being given twice.
// Errors: codec.ErrNaN, ErrTooLarge, those of the state's codec and of the
// writer. After an error the file cannot be ended.
func (e *Encoder[K, S]) Put(k K, s S, t int64) error {
	if err := e.row(k, 0); err != nil {
		return err
	}
	r := &e.rows
	r.times = append(r.times, t)
	if !e.out.info.Deadlines || t >= 0 {
		at := len(r.states)
		var err error
		if r.states, err = e.state.Append(r.states, s); err != nil {
			return e.fail(fmt.Errorf("statefile: state of key %v of operator %q: %w", k, e.out.info.Operator, err))
		}
		r.sizes = append(r.sizes, uint64(len(r.states)-at))
	}
	return e.flush(false)
}

// Remove writes a tombstone; deltas only. Errors as Put.
func (e *Encoder[K, S]) Remove(k K) error {
	if sabotage.On("tombstone-dropped") {
		return nil
	}
	if e.open && e.out.info.Kind != Delta {
		return e.fail(errors.New("statefile: only a delta has tombstones"))
	}
	if err := e.row(k, 1); err != nil {
		return err
	}
	e.rows.tombs++
	return e.flush(false)
}

func (e *Encoder[K, S]) row(k K, tombstone uint64) error {
	if !e.open {
		return e.fail(errClosed)
	}
	if e.key.NeedsCheck() {
		if err := e.key.Check(k); err != nil {
			return e.fail(fmt.Errorf("statefile: key of operator %q: %w", e.out.info.Operator, err))
		}
	}
	r := &e.rows
	at := len(r.keys)
	r.keys = e.key.Append(r.keys, k)
	r.lens = append(r.lens, uint64(len(r.keys)-at)<<1|tombstone)
	r.n++
	return nil
}

// flush writes the block if it is full, or if it is the last one.
func (e *Encoder[K, S]) flush(last bool) error {
	r := &e.rows
	if !r.full() && !(last && r.n > 0) {
		return nil
	}
	if size := len(r.keys) + len(r.states) + blockBytes; size > maxBlock {
		return e.fail(fmt.Errorf("%w: operator %q has a block of %d bytes", ErrTooLarge, e.out.info.Operator, size))
	}
	if err := e.out.frame(r.block(&e.out.info), r.n, r.tombs); err != nil {
		return e.fail(err)
	}
	r.reset()
	return nil
}

// End writes the last block and the footer, and tells what was written.
func (e *Encoder[K, S]) End() (Summary, error) {
	if !e.open {
		return Summary{}, e.fail(errClosed)
	}
	if err := e.flush(true); err != nil {
		return Summary{}, err
	}
	e.open = false
	return e.out.end()
}

func (e *Encoder[K, S]) fail(err error) error {
	if e.err == nil {
		e.err = err
	}
	e.open = false
	return e.err
}

// Delta writes what version m changed, in the order of first writes. info.Chain
// is the chain hash of the version before; Summary.Chain is that of m. Errors:
// those of Map.Delta and of Put.
func (e *Encoder[K, S]) Delta(w io.Writer, info Info, m *statemap.Map[K, S]) (Summary, error) {
	info.Kind = Delta
	seq, err := m.Delta()
	if err != nil {
		return Summary{}, err
	}
	if err := e.Begin(w, info); err != nil {
		return Summary{}, err
	}
	for d := range seq {
		if d.Removed {
			err = e.Remove(d.Key)
		} else {
			err = e.Put(d.Key, d.State, d.Time)
		}
		if err != nil {
			return Summary{}, err
		}
	}
	return e.whole(m)
}

// yieldRows is after how many entries a snapshot offers its processor to others.
// Unasked, the scheduler would let it run for 10 ms while a batch waits, which is
// twice the time of a small batch.
const yieldRows = 512

// Snapshot writes all entries of version m, in no stated order. info.Chain is
// the chain hash of m. Errors: those of Map.Err and of Put.
func (e *Encoder[K, S]) Snapshot(w io.Writer, info Info, m *statemap.Map[K, S]) (Summary, error) {
	info.Kind = Snapshot
	if err := e.Begin(w, info); err != nil {
		return Summary{}, err
	}
	for k, s := range m.All() {
		if err := e.Put(k, s.State, s.Time); err != nil {
			return Summary{}, err
		}
		if e.rows.n%yieldRows == 0 {
			runtime.Gosched()
		}
	}
	return e.whole(m)
}

// whole ends the file if the version was readable to the end.
func (e *Encoder[K, S]) whole(m *statemap.Map[K, S]) (Summary, error) {
	if err := m.Err(); err != nil {
		return Summary{}, e.fail(err)
	}
	return e.End()
}
