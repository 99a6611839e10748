package kafka

import (
	"bytes"
	"context"
	"slices"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/batch"
)

// stock is what is kept of one partition.
type stock struct {
	chunks   []chunk // successive
	next     int64   // where to fetch if there are none
	wanted   int64   // bytes to keep
	at       int64   // what is being fetched
	fetching chan struct{}
}

// chunk is whole batches that cover the offsets [from, end), with the transactions that
// were aborted among them.
type chunk struct {
	from, end int64
	batches   []byte
	aborted   []batch.Aborted
	size      int64 // of its buffer
}

// take gives the bytes that begin at or before an offset and go beyond it, if they are
// kept or on their way.
func (a *ahead) take(ctx context.Context, p *part, next int64) (chunk, bool) {
	if a == nil {
		return chunk{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for k := a.parts[p]; k != nil; {
		for len(k.chunks) > 0 && k.chunks[0].end <= next {
			a.drop(k)
		}
		if len(k.chunks) > 0 {
			c := k.chunks[0]
			if c.from > next && !sabotage.On("ahead-anywhere") {
				return chunk{}, false
			}
			a.drop(k)
			a.s.count("read_ahead", 1)
			return c, true
		}
		if k.fetching == nil || next < k.at {
			k.wanted = 0 // whoever reads now is faster
			break
		}
		arrived := k.fetching
		a.mu.Unlock()
		select {
		case <-arrived:
		case <-ctx.Done():
		}
		a.mu.Lock()
		if ctx.Err() != nil {
			break
		}
	}
	return chunk{}, false
}

// drop forgets the first chunk.
func (a *ahead) drop(k *stock) {
	a.used -= k.chunks[0].size
	k.chunks = k.chunks[1:]
}

// giveBack keeps what a read left over behind until.
func (a *ahead) giveBack(p *part, c chunk, until int64) {
	if c.end <= until {
		return
	}
	if len(c.aborted) == 0 {
		c.from, c.batches = until, batch.From(c.batches, until)
		if int64(len(c.batches)) < c.size/2 {
			c.batches = bytes.Clone(c.batches)
			c.size = int64(cap(c.batches))
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.parts[p]
	if k == nil || a.used+c.size > a.s.cfg.readAhead || len(k.chunks) > 0 && k.chunks[0].from < c.end {
		return
	}
	a.used += c.size
	k.chunks = slices.Insert(k.chunks, 0, c)
}

// forget drops what is kept of a partition, and what is on its way: it is read no more, or
// has another leader.
func (a *ahead) forget(p *part) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if k := a.parts[p]; k != nil {
		for len(k.chunks) > 0 {
			a.drop(k)
		}
		delete(a.parts, p)
	}
	for _, l := range a.queue { // the broker may lead it no more
		l.parts = slices.DeleteFunc(slices.Clone(l.parts), func(q *part) bool { return q == p })
	}
}
