package store

import (
	"bytes"
	"io"
	"iter"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/statemap"
)

// Iterate yields all keys as they are now.
func (h *handle[K, S]) Iterate() iter.Seq2[K, statemap.Entry[S]] {
	return h.Prefix(nil)
}

// Prefix yields the keys whose canonical bytes begin with prefix, as they are
// now.
func (h *handle[K, S]) Prefix(prefix []byte) iter.Seq2[K, statemap.Entry[S]] {
	if h.over() {
		return func(func(K, statemap.Entry[S]) bool) {}
	}
	if h.done {
		return h.begin(h.p.all(h.m, prefix))
	}
	view, err := h.freeze()
	if err != nil {
		return func(func(K, statemap.Entry[S]) bool) {}
	}
	all := h.p.all(view, prefix)
	return h.begin(func(yield func(K, statemap.Entry[S]) bool) {
		h.running++
		defer func() { h.running-- }()
		all(yield)
	})
}

// begin is an iteration that yields nothing if it begins when the handle is over.
func (h *handle[K, S]) begin(all iter.Seq2[K, statemap.Entry[S]]) iter.Seq2[K, statemap.Entry[S]] {
	return func(yield func(K, statemap.Entry[S]) bool) {
		if !h.over() {
			all(yield)
		}
	}
}

// all yields the keys of a version that have a prefix.
func (p *Provider[K, S]) all(m *statemap.Map[K, S], prefix []byte) iter.Seq2[K, statemap.Entry[S]] {
	prefix = bytes.Clone(prefix)
	return func(yield func(K, statemap.Entry[S]) bool) {
		var key []byte
		for k, e := range m.All() {
			if len(prefix) > 0 {
				if key = p.key.Append(key[:0], k); !bytes.HasPrefix(key, prefix) {
					continue
				}
			}
			if p.clone != nil {
				var err error
				if e.State, err = p.clone(e.State); err != nil {
					return
				}
			}
			if !yield(k, e) {
				return
			}
		}
	}
}

// freeze gives a sealed version with what the handle holds now, and goes on in
// the next one.
func (h *handle[K, S]) freeze() (*statemap.Map[K, S], error) {
	if sabotage.On("iterator-sees-writes") {
		return h.m, nil
	}
	if n := len(h.views); n > 0 && h.writes == 0 {
		return h.views[n-1], nil
	}
	if err := h.note(); err != nil {
		return nil, err
	}
	next, err := h.m.Copy()
	if err != nil {
		return nil, err
	}
	h.views = append(h.views, h.m)
	h.m, h.writes = next, 0
	return h.views[len(h.views)-1], nil
}

// note remembers what the inner version has touched.
func (h *handle[K, S]) note() error {
	if h.m.DeltaLen() == 0 {
		return nil
	}
	seq, err := h.m.Delta()
	if err != nil {
		return err
	}
	if h.seen == nil {
		h.seen = map[K]struct{}{}
	}
	for d := range seq {
		if _, ok := h.seen[d.Key]; !ok {
			h.seen[d.Key] = struct{}{}
			h.touched = append(h.touched, d.Key)
		}
	}
	return h.m.Err()
}

// fill writes the delta of the whole handle: what differs from its base.
func (h *handle[K, S]) fill(w io.Writer, e *statefile.Encoder[K, S], info statefile.Info) (statefile.Summary, error) {
	if len(h.views) == 0 {
		return e.Delta(w, info, h.m)
	}
	if err := e.Begin(w, info); err != nil {
		return statefile.Summary{}, err
	}
	for _, k := range h.touched {
		s, t, ok, err := h.m.Lookup(k)
		if err != nil {
			return statefile.Summary{}, err
		}
		if ok {
			err = e.Put(k, s, t)
		} else if _, was, gerr := h.base.m.Get(k); gerr != nil || was {
			if err = gerr; err == nil {
				err = e.Remove(k)
			}
		}
		if err != nil {
			return statefile.Summary{}, err
		}
	}
	return e.End()
}
