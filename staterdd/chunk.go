package staterdd

import "sync"

// Mapped outputs are kept in chunks. The first chunk of a partition's batch is small, so that
// many remembered quiet batches cost little; the others are large enough that appending is a
// plain store.
const (
	smallChunk = 64
	largeChunk = 1024
	keptChunks = 256 // free chunks of each size kept by an operator
)

// chunkPool recycles chunks between the batches of one operator. It is safe for concurrent use:
// partitions take chunks while released batches give theirs back.
type chunkPool[M any] struct {
	mu           sync.Mutex
	small, large [][]M
}

// get returns an empty chunk of the given capacity, one of the two sizes.
func (p *chunkPool[M]) get(size int) []M {
	p.mu.Lock()
	list := p.list(size)
	if n := len(*list); n > 0 {
		c := (*list)[n-1]
		(*list)[n-1] = nil
		*list = (*list)[:n-1]
		p.mu.Unlock()
		return c
	}
	p.mu.Unlock()
	return make([]M, 0, size)
}

// put takes chunks back. They are cleared, so that a free chunk pins no user data.
func (p *chunkPool[M]) put(chunks [][]M) {
	for _, c := range chunks {
		clear(c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range chunks {
		if list := p.list(cap(c)); list != nil && len(*list) < keptChunks {
			*list = append(*list, c[:0])
		}
	}
}

func (p *chunkPool[M]) list(size int) *[][]M {
	switch size {
	case smallChunk:
		return &p.small
	case largeChunk:
		return &p.large
	}
	return nil
}

// mapped is the outputs of one partition in one batch, in order. One writer; readers only after
// the stage has ended.
type mapped[M any] struct {
	pool   *chunkPool[M]
	chunks [][]M // full ones and, at last, cur
	cur    []M
}

// reserve returns the current chunk with room for n (≤ smallChunk) more outputs. The caller
// appends to it and gives it back by keep.
func (m *mapped[M]) reserve(n int) []M {
	if cap(m.cur)-len(m.cur) < n {
		m.next()
	}
	return m.cur
}

func (m *mapped[M]) keep(c []M) { m.cur = c }

// push appends one output.
func (m *mapped[M]) push(v M) {
	if len(m.cur) == cap(m.cur) {
		m.next()
	}
	m.cur = append(m.cur, v)
}

// next closes the current chunk and begins another one.
func (m *mapped[M]) next() {
	size := smallChunk
	if m.cur != nil {
		size = largeChunk
	}
	m.flush()
	m.cur = m.pool.get(size)
}

// flush puts the current chunk among the finished ones.
func (m *mapped[M]) flush() {
	if len(m.cur) > 0 {
		m.chunks = append(m.chunks, m.cur)
	} else if m.cur != nil {
		m.pool.put([][]M{m.cur})
	}
	m.cur = nil
}

// take ends the batch and hands its chunks over.
func (m *mapped[M]) take() [][]M {
	m.flush()
	c := m.chunks
	m.chunks = nil
	return c
}

// drop gives everything back: the attempt failed.
func (m *mapped[M]) drop() {
	if chunks := m.take(); len(chunks) > 0 {
		m.pool.put(chunks)
	}
}
