package kafka

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/batch"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
)

// ahead fetches bytes before a read asks for them: of a plan's ranges as soon as it is
// made, many partitions with one request, so that a batch of many small ranges costs a few
// round trips and not one for each; and behind the end of the last plan while its batch
// computes. Those are no plan: a read that asks for their offsets takes them, nobody else
// sees them.
//
// A few workers for each broker run while there is something to fetch from it. What they
// keep and have asked for is bounded over all partitions. An error ends its try and is
// told by nobody: the read that wants the bytes meets it too.
type ahead struct {
	s      *kafkaSource
	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu    sync.Mutex
	used  int64 // bytes that are kept or being fetched, at most the option's
	parts map[*part]*stock
	queue map[string]*line // by broker; an entry: a worker runs
}

// line is what waits to be fetched from one broker.
type line struct {
	parts   []*part
	workers int
}

const (
	// leastAhead is the least that is worth a request.
	leastAhead = 4 << 10
	// unknownAhead is asked for of a range of which the size is not known.
	unknownAhead = 16 << 10
	// workersAhead is how many requests to one broker are under way at most.
	workersAhead = 4
)

func newAhead(s *kafkaSource) *ahead {
	a := &ahead{s: s, parts: map[*part]*stock{}, queue: map[string]*line{}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

func (a *ahead) close() {
	a.mu.Lock()
	a.cancel() // nobody starts a worker now
	a.mu.Unlock()
	a.wait.Wait()
}

// want is called when range r was read: if more is known to be there, as much as r took
// is fetched.
func (a *ahead) want(p *part, r source.Range) {
	s := a.s
	s.mu.Lock()
	likely := int64(p.wire * float64(r.Until-r.From) * 1.25)
	more := r.Until == p.next && p.end > p.next
	share := s.shareAhead()
	s.mu.Unlock()
	if !more {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.order(p, r.Until, min(likely, share))
	a.begin()
}

// shareAhead is what one partition may have of the budget. mu is held.
func (s *kafkaSource) shareAhead() int64 {
	return max(s.cfg.readAhead/int64(max(len(s.parts), 1)), 64<<10)
}

// planned is called when a plan is made. One range alone is read at once; of several,
// only as many are as there are tasks.
func (a *ahead) planned(moves []move, take []int64) {
	type need struct {
		p     *part
		from  int64
		until int64
		bytes int64
	}
	var needs []need
	s := a.s
	s.mu.Lock()
	share := s.shareAhead()
	for i, m := range moves {
		if take[i] == 0 {
			continue
		}
		bytes := int64(unknownAhead)
		if m.p.wire > 0 {
			bytes = int64(min(m.p.wire*float64(take[i])*1.25, 1<<40))
		}
		needs = append(needs, need{m.p, m.from, m.from + take[i], min(max(bytes, unknownAhead), share)})
	}
	s.mu.Unlock()
	if len(needs) < 2 || sabotage.On("ranges-one-by-one") {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range needs {
		k := a.parts[n.p]
		for k != nil && len(k.chunks) > 0 && k.chunks[0].end <= n.from {
			a.drop(k)
		}
		if k == nil || len(k.chunks) == 0 || k.chunks[len(k.chunks)-1].end < n.until {
			a.order(n.p, n.from, n.bytes)
		}
	}
	a.begin()
}

// order puts p into its broker's line: bytes are to be kept of it, from an offset on if
// there are none. a.mu is held, as in what follows.
func (a *ahead) order(p *part, from, bytes int64) {
	addr := a.s.cluster.leader(p.TopicPartition)
	if addr == "" || a.ctx.Err() != nil || len(a.s.cfg.passed[p.TopicPartition]) > 0 {
		return
	}
	k := a.parts[p]
	if k == nil {
		k = &stock{}
		a.parts[p] = k
	}
	k.next, k.wanted = from, max(bytes, leastAhead)
	l := a.queue[addr]
	if l == nil {
		l = &line{}
		a.queue[addr] = l
	}
	if !slices.Contains(l.parts, p) {
		l.parts = append(l.parts, p)
	}
}

// begin starts workers where there are none. Each starts the next one if it leaves work.
// What it fetches first is under way when begin returns: a read waits for it.
func (a *ahead) begin() {
	for addr, l := range a.queue {
		if l.workers == 0 {
			a.more(addr, l)
		}
	}
}

// more starts a worker if there is work for it.
func (a *ahead) more(addr string, l *line) {
	if g := a.group(l); len(g) > 0 && a.ctx.Err() == nil {
		l.workers++
		a.wait.Go(func() { a.work(addr, l, g) })
		if l.workers < workersAhead {
			a.more(addr, l)
		}
		return
	}
	if l.workers == 0 {
		delete(a.queue, addr)
	}
}

// work fetches from one broker until nothing is wanted of it.
func (a *ahead) work(addr string, l *line, g []want) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(g) > 0 && a.ctx.Err() == nil {
		a.fetch(addr, l, g)
		g = a.group(l)
	}
	if l.workers--; l.workers == 0 {
		delete(a.queue, addr)
	}
}

// want is one partition of a request.
type want struct {
	p *part
	k *stock
	wire.FetchPart
}

// group takes out of a line what one request asks for, and marks it as being fetched.
func (a *ahead) group(l *line) (g []want) {
	s := a.s
	total := int64(0)
	for len(l.parts) > 0 {
		p := l.parts[0]
		k := a.parts[p]
		if k == nil || k.fetching != nil {
			l.parts = l.parts[1:]
			continue
		}
		s.mu.Lock()
		end := p.end
		s.mu.Unlock()
		at, have := k.next, int64(0)
		for _, c := range k.chunks {
			have, at = have+int64(len(c.batches)), c.end
		}
		most := int64(s.cfg.fetchMaxBytes)
		size := min(k.wanted-have, most)
		if size < leastAhead || at >= end {
			l.parts = l.parts[1:]
			continue
		}
		if len(g) > 0 && total+size > most {
			break
		}
		if size = min(size, s.cfg.readAhead-a.used); size < leastAhead {
			if len(g) == 0 && l.workers == 0 { // nobody makes room
				l.parts = nil
			}
			break
		}
		l.parts = l.parts[1:]
		total += size
		a.used += size
		k.at, k.fetching = at, make(chan struct{})
		g = append(g, want{p, k, wire.FetchPart{TopicPartition: wire.TopicPartition(p.TopicPartition), Offset: at, MaxBytes: int(size)}})
	}
	return g
}

// fetch makes one request, keeps what comes, and puts back into the line what may have
// more. a.mu is not held during the request.
func (a *ahead) fetch(addr string, l *line, g []want) {
	a.mu.Unlock()
	answers, throttle := a.ask(addr, g)
	a.mu.Lock()
	var again []*part
	for i, w := range g {
		c := answers[i]
		a.used += c.size - int64(w.MaxBytes)
		close(w.k.fetching)
		w.k.fetching = nil
		switch {
		case a.parts[w.p] != w.k, a.used > a.s.cfg.readAhead:
			a.used -= c.size
		case c.size > 0:
			w.k.chunks = append(w.k.chunks, c)
			l.parts = append(l.parts, w.p)
		case i > 0 && answers[0].size > 0: // the others may have left it no room
			again = append(again, w.p)
		}
	}
	l.parts = append(again, l.parts...)
	if throttle > 0 {
		a.mu.Unlock()
		_ = clock.Wait(a.ctx, clock.System(), min(throttle, longestThrottle))
		a.mu.Lock()
	}
}

// ask makes one request. If several partitions have bytes, each gets a buffer of its own:
// records keep theirs in memory.
func (a *ahead) ask(addr string, g []want) (out []chunk, throttle time.Duration) {
	out = make([]chunk, len(g))
	q := wire.FetchRequest{Committed: !a.s.cfg.dirty}
	parts := make([]wire.FetchPart, len(g))
	for i, w := range g {
		parts[i] = w.FetchPart
		q.MaxBytes += w.MaxBytes
	}
	q.MaxAnswer = q.MaxBytes + headroom
	var answers []wire.FetchAnswer
	err := a.s.cluster.with(a.ctx, addr, func(c *wire.Conn) (err error) {
		answers, err = c.FetchAll(a.ctx, q, parts)
		return err
	})
	if err != nil {
		return out, 0
	}
	for i, x := range answers {
		throttle = x.Throttle
		whole, end := batch.Whole(x.Batches)
		if x.Err != nil || end <= g[i].Offset {
			continue
		}
		size := int64(cap(x.Batches))
		if len(g) > 1 {
			whole = bytes.Clone(whole)
			size = int64(cap(whole))
		}
		out[i] = chunk{from: g[i].Offset, end: end, batches: whole, aborted: x.Aborted, size: size}
	}
	return out, throttle
}
