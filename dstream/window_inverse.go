package dstream

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/staterdd"
)

// ErrNotInWindow: records leave an inverse window whose key its result does not
// have, so that nothing can be taken away. It means that the filter dropped a key
// too early, or that the functions are not inverse to each other. See
// ReduceByKeyAndWindowInverse.
var ErrNotInWindow = errors.New("neither the previous window has a value for the key, nor are there new ones: " +
	"it was dropped by the filter while its records were still in the window")

// ErrWindowChanged: a checkpoint has the results of an inverse window of another length
// or slide. Each is made of the one before, by what leaves the window and what comes, so
// they cannot go on as those of the new one. (Other windows are made anew each time, and
// may be changed.)
var ErrWindowChanged = errors.New("the checkpoint has the results of another inverse window: give the new one another name, " +
	"and let the old one go by WithDrop, or go back to it")

// windowMark comes before the window in the layout of a log.
const windowMark = " in windows of "

func windowText(length, slide time.Duration) string { return fmt.Sprintf("%v every %v", length, slide) }

// windowFits says whether a layout is of the window; older ones do not tell.
func windowFits(layout, window string) error {
	if _, was, ok := strings.Cut(layout, windowMark); ok && was != window {
		return fmt.Errorf("%w (there: %s, in the program: %s)", ErrWindowChanged, was, window)
	}
	return nil
}

// windowSetting stores the window beside the operator of its results, and has a start
// refused, before it takes the checkpoint, if another one is there. What an older
// program has stored does not tell: then the layout of the log does, once it is loaded.
func windowSetting(op *checkpoint.JobOperator, window string) {
	const setting = "window"
	name := op.Name
	op.Settings[setting] = window
	op.Fits = func(stored map[string]string) error {
		was, ok := stored[setting]
		if !ok || was == window || sabotage.On("window-change-not-seen") || sabotage.On("window-change-seen-late") {
			return nil
		}
		return fmt.Errorf("window %q: %w", name, windowFits(windowMark+was, window))
	}
}

// move is what happens to a key's result in one slide: a value leaves the window, or
// one comes.
type move[V any] struct {
	Slide int // of those that the batch makes up for, from 0
	Gone  bool
	Value V
}

// inverse adds the streams of an inverse window: what is kept of each batch, the
// moves of each slide, the operator whose state is the result, which is called for
// the keys that move alone, and what is given, which is the result but for batches
// that only windows that were passed over had.
func inverse[K comparable, V any](in Stream[Pair[K, V]], kind string, add, sub func(V, V) V, keep func(K, V) bool, length, slide time.Duration, opts []OpOption) *DStream[Pair[K, V]] {
	w := windowByKey(in, kind, add == nil || sub == nil, length, slide, opts, true, reducedBatch[K](add))
	moves := bind(w.node, w.moves)
	spec, _ := updateSpec(kind, staterdd.UpdateErr(func(_ time.Time, k K, moves []move[V], result Option[V]) (Option[V], error) {
		return slid(k, moves, result, add, sub, keep)
	}), opts) // what is wrong with the options is noted already
	results := addStateful(moves, kind, spec.OnlyWithData().Immutable().Named(""))
	out := newNode(nil, kind, results.node)
	out.name, w.node.name, results.node.name = w.node.name, "", ""
	w.node.face, results.node.face = out, out
	if op, ok := results.op.(*statefulOp[K, move[V], V, Pair[K, V]]); ok {
		op.window = windowText(length, slide)
	}
	return bind(out, func(b *batchRun) (*rdd.RDD[Pair[K, V]], error) {
		r, err := rddOf[Pair[K, V]](b, results.node)
		if err != nil {
			return nil, err
		}
		s, err := spanOf[Pair[K, V]](b, w.node, w.batch, length)
		if err != nil || len(s.late) == 0 {
			return r, err
		}
		p := w.by(b)
		sums := rdd.ReduceByKey(rdd.Within(mergeOf(b, p, append(s.late, r)), out.label()), add, p)
		if keep != nil {
			sums = rdd.Filter(sums, func(kv Pair[K, V]) bool { return keep(kv.Key, kv.Value) })
		}
		return sums.Named(out.label()), nil
	})
}

// moves are what leaves and what comes since the window before, slide by slide: to a
// window a tick without a batch is an empty batch.
func (w *keyedWindow[K, V]) moves(b *batchRun) (*rdd.RDD[Pair[K, move[V]]], error) {
	slide := w.node.slide
	end, _ := b.slides(w.node)
	from := b.lastGrid(b.prev, slide) // where the window before ended
	type batch struct {
		slide int
		gone  bool
		r     *rdd.RDD[Pair[K, V]]
	}
	var batches []batch
	take := func(at time.Time, gone bool, r *rdd.RDD[Pair[K, V]]) {
		if at.After(from) && !at.After(end) {
			batches = append(batches, batch{int((at.Sub(from) - 1) / slide), gone, r})
		}
	}
	err := eachBatch(b, w.node, w.batch, func(t time.Time, r *rdd.RDD[Pair[K, V]]) {
		take(t.Add(w.length), true, r)
		take(t, false, r)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(batches, func(x, y batch) int { return cmp.Compare(x.slide, y.slide) })
	var moved []*rdd.RDD[Pair[K, move[V]]]
	for _, x := range batches {
		moved = append(moved, rdd.MapValues(x.r, func(v V) move[V] { return move[V]{x.slide, x.gone, v} }))
	}
	return mergeOf(b, w.by(b), moved), nil
}

// slid is a key's result after its moves.
func slid[K comparable, V any](k K, moves []move[V], result Option[V], add, sub func(V, V) V, keep func(K, V) bool) (Option[V], error) {
	for len(moves) > 0 {
		slide := moves[0].Slide
		var gone, came Option[V]
		for ; len(moves) > 0 && moves[0].Slide == slide; moves = moves[1:] {
			sum := &came
			if moves[0].Gone {
				sum = &gone
			}
			if v, ok := sum.Get(); ok {
				*sum = rdd.Some(add(v, moves[0].Value))
			} else {
				*sum = rdd.Some(moves[0].Value)
			}
		}
		v, had := result.Get()
		if g, ok := gone.Get(); ok && had && !sabotage.On("window-keeps-all") {
			v = sub(v, g)
		}
		switch c, ok := came.Get(); {
		case ok && had:
			v = add(v, c)
		case ok:
			v = c
		case !had:
			return result, ErrNotInWindow
		}
		if result = rdd.Some(v); keep != nil && !keep(k, v) {
			result = rdd.None[V]()
		}
	}
	return result, nil
}
