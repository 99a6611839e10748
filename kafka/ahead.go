package kafka

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/batch"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
)

// ahead fetches bytes behind the end of the last plan while its batch computes. They are
// no plan: a read that asks for their offsets takes them, nobody else sees them.
//
// One worker for each broker runs while there is something to fetch from it. An error
// ends its try and is told by nobody: the read that wants the bytes meets it too.
type ahead struct {
	s      *kafkaSource
	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu    sync.Mutex
	used  int64 // bytes that are kept or being fetched, at most the option's
	parts map[*part]*stock
	queue map[string][]*part // by broker; an entry: a worker runs
}

// stock is what is kept of one partition.
type stock struct {
	chunks   []chunk // successive
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

// leastAhead is the least that is worth a request.
const leastAhead = 4 << 10

func newAhead(s *kafkaSource) *ahead {
	a := &ahead{s: s, parts: map[*part]*stock{}, queue: map[string][]*part{}}
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
	share := max(s.cfg.readAhead/int64(max(len(s.parts), 1)), 64<<10)
	s.mu.Unlock()
	addr := s.cluster.leader(p.TopicPartition)
	if !more || addr == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx.Err() != nil {
		return
	}
	k := a.parts[p]
	if k == nil {
		k = &stock{}
		a.parts[p] = k
	}
	k.wanted = min(max(likely, leastAhead), share)
	list, running := a.queue[addr]
	if !slices.Contains(list, p) {
		a.queue[addr] = append(list, p)
	}
	if !running {
		a.wait.Go(func() { a.work(addr) })
	}
}

// work fetches from one broker until nothing is wanted of it.
func (a *ahead) work(addr string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.queue[addr]) > 0 && a.ctx.Err() == nil {
		p := a.queue[addr][0]
		a.queue[addr] = a.queue[addr][1:]
		if k := a.parts[p]; k != nil && a.fetch(addr, p, k) {
			a.queue[addr] = append(a.queue[addr], p)
		}
	}
	delete(a.queue, addr)
}

// fetch fetches one chunk, and says whether to go on. a.mu is held but for the time of
// the request.
func (a *ahead) fetch(addr string, p *part, k *stock) bool {
	s := a.s
	s.mu.Lock()
	at, end := p.next, p.end
	s.mu.Unlock()
	have := int64(0)
	for _, c := range k.chunks {
		have, at = have+int64(len(c.batches)), c.end
	}
	size := min(k.wanted-have, s.cfg.readAhead-a.used, int64(s.cfg.fetchMaxBytes))
	if size < leastAhead || at >= end || k.fetching != nil {
		return false
	}
	a.used += size
	k.at, k.fetching = at, make(chan struct{})
	a.mu.Unlock()
	c := a.ask(addr, p, at, int(size))
	a.mu.Lock()
	a.used += c.size - size
	close(k.fetching)
	k.fetching = nil
	if a.parts[p] != k || c.size == 0 || a.used > s.cfg.readAhead {
		a.used -= c.size
		return false
	}
	k.chunks = append(k.chunks, c)
	return true
}

// ask makes one request.
func (a *ahead) ask(addr string, p *part, at int64, size int) (c chunk) {
	q := wire.FetchRequest{TopicPartition: wire.TopicPartition(p.TopicPartition), Offset: at,
		Committed: !a.s.cfg.dirty, MaxBytes: size, MaxAnswer: size + headroom}
	var answer wire.FetchAnswer
	err := a.s.cluster.with(a.ctx, addr, func(c *wire.Conn) (err error) {
		answer, err = c.Fetch(a.ctx, q)
		return err
	})
	if err != nil || answer.Err != nil {
		return chunk{}
	}
	whole, end := batch.Whole(answer.Batches)
	if end <= at {
		return chunk{}
	}
	return chunk{from: at, end: end, batches: whole, aborted: answer.Aborted, size: int64(cap(answer.Batches))}
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

// forget drops what is kept of a partition that is read no more.
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
}
