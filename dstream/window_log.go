package dstream

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/staterdd"
)

// On a checkpoint each windowed stream has a hidden operator beside it, whose state
// is the batches that windows will still read: each is written once, in the epoch
// that made it, and removed when no window can ask for it any more. When a run
// begins, they are remembered as if it had made them itself. So windows need no
// source that still has what was read before, and no ancestor is computed twice.
//
// A window reads of earlier runs what its own log has, no more: what the log of another
// window of the stream has might be gone when the epoch is redone. A log keeps its batches
// as long as the window of today asks for them, those too that were written for a shorter one.

// batchLog is the log of a windowed stream.
type batchLog struct {
	op *node // the hidden operator
	of *node // the stream whose batches it has
	// bringBack gives the batches of the operator's current version, oldest first.
	bringBack func() ([]loggedBatch, error)
	// fits, which may be nil, says what is wrong with a layout of the log.
	fits func(layout string) error
	// brought are the batches of earlier runs that are remembered. The hand owns it.
	brought map[*batchRun]any
}

// loggedBatch is a batch of an earlier run, for one stream.
type loggedBatch struct {
	batch Batch
	prev  time.Time
	rdd   func(b *batchRun) any

	layout string
}

// logKey finds a piece of a partition of a batch.
type logKey struct {
	Time             int64 // of the batch
	Partition, Piece int32
}

// logRows is such a piece. Only its codec knows the type of the rows: the operator of
// every log is the same code.
type logRows struct {
	Epoch  uint64
	Prev   int64  // the time of the batch before
	Layout string // of rows that lie by key, and of what window where results go on
	Rows   any    // a slice
}

// storedRows is the form of logRows in files.
type storedRows[T any] struct {
	Epoch  uint64
	Prev   int64
	Layout string
	Rows   []T
}

func rowsCodec[T any]() (codec.Codec[logRows], error) {
	return codec.As(
		func(r logRows) storedRows[T] {
			rows, _ := r.Rows.([]T) // the zero logRows has none
			return storedRows[T]{Epoch: r.Epoch, Prev: r.Prev, Layout: r.Layout, Rows: rows}
		},
		func(s storedRows[T]) logRows {
			return logRows{Epoch: s.Epoch, Prev: s.Prev, Layout: s.Layout, Rows: s.Rows}
		})
}

// logPiece is the number of rows of a piece.
const logPiece = 4096

// logBatches adds the log of the windowed stream w over p, in a context with a
// checkpoint. again makes the RDD of a logged batch; layout, which may be nil, is
// what it is told of how the rows lie.
func logBatches[T any](w, p *node, again func(b *batchRun, parts [][]T, layout string) *rdd.RDD[T], layout func(b *batchRun) string) {
	if w.ssc == nil || p == nil || w.ssc.cfg.checkpoint.at == "" {
		return
	}
	data := newNode(nil, w.kind, p)
	rows := bind(data, func(b *batchRun) (*rdd.RDD[Pair[logKey, logRows]], error) {
		r, err := rddOf[T](b, p)
		if err != nil {
			return nil, err
		}
		row := logRows{Epoch: b.batch.Epoch, Prev: b.prev.UnixNano()}
		if layout != nil {
			row.Layout = layout(b)
		}
		return rdd.MapPartitions(r, func(part int, in iter.Seq[T]) iter.Seq[Pair[logKey, logRows]] {
			return inPieces(logKey{Time: b.batch.Time.UnixNano(), Partition: int32(part)}, row, in)
		}), nil
	})
	rowsAs, err := rowsCodec[T]()
	o := keepRows(w, rows, rowsAs, err)
	w.log = &batchLog{op: o.node, of: p, bringBack: func() ([]loggedBatch, error) { return broughtBack(o, again) }}
}

// logOp is the hidden operator that keeps pieces.
type logOp = statefulOp[logKey, logRows, logRows, struct{}]

// keepRows adds the operator that keeps the pieces for the windowed stream w; its
// rows cannot be stored if err is set.
func keepRows(w *node, rows *DStream[Pair[logKey, logRows]], c codec.Codec[logRows], err error) *logOp {
	keep := func(c *staterdd.Call[logRows, struct{}], k logKey, v Option[logRows]) error {
		// A batch goes when windows that end after this one cannot cover it.
		last := time.Unix(0, k.Time).Add(longer(w.slide-1, w.lookback))
		r, ok := v.Get()
		switch {
		case ok:
			c.State.Update(r)
			c.SetDeadline(last)
		case !c.Batch.Time.After(last) && !sabotage.On("window-keeps-as-written"):
			c.SetDeadline(last) // it was written for a shorter window
		}
		return nil // or it is over: the state goes with the deadline
	}
	spec := staterdd.Keyed(keep).Immutable()
	if err == nil {
		spec = spec.Codec(c)
	}
	d := addStateful(rows, w.kind, spec)
	o, _ := d.op.(*logOp) // it is one
	if err != nil {
		o.notStorable = fmt.Errorf("%w: %w", staterdd.ErrCodec, err)
	}
	d.node.face, d.node.suffix = w, " batches"
	return o
}

// inPieces cuts a partition; one without rows is a piece, too.
func inPieces[T any](k logKey, row logRows, in iter.Seq[T]) iter.Seq[Pair[logKey, logRows]] {
	return func(yield func(Pair[logKey, logRows]) bool) {
		var rows []T
		give := func() bool {
			row.Rows = rows
			ok := yield(Pair[logKey, logRows]{Key: k, Value: row})
			rows = nil
			k.Piece++
			return ok
		}
		for v := range in {
			if rows = append(rows, v); len(rows) == logPiece && !give() {
				return
			}
		}
		if len(rows) > 0 || k.Piece == 0 {
			give()
		}
	}
}

// logPieceAt is a piece with its place.
type logPieceAt struct {
	at  logKey
	row logRows
}

// pieces are those of the operator's current version, by time and place.
func pieces(o *logOp) ([]logPieceAt, error) {
	if o.current == nil {
		return nil, nil
	}
	var all []logPieceAt
	for _, rec := range o.current.Records() {
		for k, e := range rec.StateMap.All() {
			all = append(all, logPieceAt{k, e.State})
		}
		if err := rec.StateMap.Err(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b logPieceAt) int {
		return cmp.Or(cmp.Compare(a.at.Time, b.at.Time), cmp.Compare(a.at.Partition, b.at.Partition), cmp.Compare(a.at.Piece, b.at.Piece))
	})
	return all, nil
}

// broughtBack reads the batches that an operator's current version has.
func broughtBack[T any](o *logOp, again func(*batchRun, [][]T, string) *rdd.RDD[T]) ([]loggedBatch, error) {
	pieces, err := pieces(o)
	if err != nil {
		return nil, err
	}
	var out []loggedBatch
	for i := 0; i < len(pieces); {
		first := pieces[i]
		var parts [][]T
		for ; i < len(pieces) && pieces[i].at.Time == first.at.Time; i++ {
			p := int(pieces[i].at.Partition)
			for len(parts) <= p {
				parts = append(parts, nil)
			}
			rows, _ := pieces[i].row.Rows.([]T) // what rowsCodec made
			if parts[p] == nil {
				parts[p] = slices.Clip(rows) // the state's own: nobody changes them
			} else {
				parts[p] = append(parts[p], rows...)
			}
		}
		out = append(out, loggedBatch{
			batch: Batch{Epoch: first.row.Epoch, Time: time.Unix(0, first.at.Time).UTC()},
			prev:  time.Unix(0, first.row.Prev).UTC(),
			rdd:   func(b *batchRun) any { return again(b, parts, first.row.Layout) },

			layout: first.row.Layout,
		})
	}
	return out, nil
}

// ofRows is an RDD of the rows that a log had. It has the run's executor, as what the
// sources give: a window may hold nothing else.
func ofRows[T any](b *batchRun, n *node, parts [][]T) *rdd.RDD[T] {
	r := rdd.New(len(parts), func(t *rdd.Task, emit func(T) error) error {
		t.Origin = rdd.Origin{Stream: n.label()}
		for i, v := range parts[t.Partition] {
			t.Origin.Offset = int64(i)
			if err := emit(v); err != nil {
				return err
			}
		}
		return nil
	}).Named(n.label())
	if sabotage.On("window-of-no-executor") {
		return r
	}
	return r.WithExecutor(b.run.exec)
}

// asLogged is r, rows of an earlier batch of this run, with origins as ofRows gives them to
// whoever redoes the running epoch: letters have origins, and the sources that these name
// decide whose letters they are. Where all bad records fail their batch, errors name the
// records as the sources gave them.
func asLogged[T any](b *batchRun, w *node, r *rdd.RDD[T]) *rdd.RDD[T] {
	if !b.run.exec.rules.guards || sabotage.On("window-origins-differ") {
		return r
	}
	return rdd.WithOrigin(r, w.label())
}

// bringBack remembers the batches that the logs have. It is called when a life
// begins, before its first batch.
func (r *run) bringBack() error {
	if sabotage.On("window-batches-lost") {
		return nil
	}
	byTime := map[int64]*batchRun{}
	for _, n := range r.ssc.nodes {
		if !n.live || n.log == nil {
			continue
		}
		n.log.brought = map[*batchRun]any{}
		logged, err := n.log.bringBack()
		if err != nil {
			return fmt.Errorf("the batches of window %q: %w", n.log.op.label(), err)
		}
		for _, l := range logged {
			if l.batch.Time.After(r.committedAt) {
				return fmt.Errorf("the batches of window %q: %w", n.log.op.label(), errLogAhead)
			}
			if fits := n.log.fits; fits != nil && !sabotage.On("window-change-not-seen") {
				if err := fits(l.layout); err != nil {
					return fmt.Errorf("window %q: %w", strings.TrimSuffix(n.log.op.label(), n.log.op.suffix), err)
				}
			}
			b := byTime[l.batch.Time.UnixNano()]
			if b == nil {
				b = newBatchRun(r, r.hard, l.batch)
				b.prev = l.prev
				b.over.Store(true)
				byTime[l.batch.Time.UnixNano()] = b
			}
			made := l.rdd(b)
			n.log.brought[b] = made
			b.atForget(n.log.of, func() { delete(n.log.brought, b) })
			if s := &b.slots[n.log.of.id]; !s.made { // for Slice
				s.made, s.rdd = true, made
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range byTime {
		r.remembered = append(r.remembered, b)
	}
	slices.SortFunc(r.remembered, func(a, b *batchRun) int { return a.batch.Time.Compare(b.batch.Time) })
	return nil
}

// errLogAhead: an entry of a log is later than the version that it belongs to.
var errLogAhead = errors.New("one is later than the newest committed epoch: the state is not that of this operator")

// faceOf says that inner is hidden behind the stream outer: its log and its operator
// go by outer's name.
func faceOf[T any](inner *node, outer *DStream[T]) *DStream[T] {
	inner.face = outer.node
	return outer
}

// seen is the stream that users see of a node: itself, if it is not hidden.
func (n *node) seen() *node {
	for n.face != nil {
		n = n.face
	}
	return n
}

// nameHidden names the hidden operators after the streams that users see; ssc.mu is
// held.
func (ssc *StreamingContext) nameHidden() {
	for _, n := range ssc.nodes {
		if n.op == nil || n.face == nil {
			continue
		}
		if n.name = n.seen().name; n.name != "" {
			n.name += n.suffix
		}
	}
}
