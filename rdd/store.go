package rdd

import (
	"fmt"
	"slices"
	"sync"

	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/internal/sabotage"
)

// store holds the blocks that a stage's tasks write: one writer per source, any
// number of targets. Writers share nothing while they write; join orders the
// blocks of each target by source, so that the order does not depend on which
// task ended first.
type store[B any] struct {
	targets int
	reset   func(*B) // makes a block fit for reuse: drops what it references
	life    *Life

	mu     sync.Mutex
	list   *pool.FreeList[B]
	parts  [][]placed[B] // of each source, in the order the blocks were begun
	ended  []int         // sources in order of completion
	joined [][]*B        // of each target; nil until join
}

// placed is a block and the target it belongs to.
type placed[B any] struct {
	block  *B
	target int
}

func newStore[B any](name string, sources, targets int, reset func(*B)) *store[B] {
	s := &store[B]{targets: targets, reset: reset, parts: make([][]placed[B], sources)}
	s.life = NewLife(name, s.free)
	return s
}

// stage is the work that fills the store, a task for each source, and joins it
// when all have succeeded. Releasing the stage closes the store.
func (s *store[B]) stage(name string, deps []*Stage, run func(t *Task) error) *Stage {
	return NewStage(StageConfig{
		Name: name, Deps: deps, Tasks: len(s.parts), Run: run,
		Finish: func(err error) error {
			if err == nil {
				s.join()
			}
			return err
		},
		Release: s.life.Close,
	})
}

// begin discards what an earlier attempt of the source wrote and gives the list
// from which its writer takes blocks.
func (s *store[B]) begin(t *Task, source int) *pool.FreeList[B] {
	list := listOf[B](t.Pools)
	s.mu.Lock()
	defer s.mu.Unlock()
	if list != nil {
		s.list = list
	}
	s.recycle(s.parts[source])
	s.parts[source] = nil
	return list
}

// end gives the store what a writer wrote.
func (s *store[B]) end(source int, blocks []placed[B]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[source] = blocks
	s.ended = append(s.ended, source)
}

// join orders the blocks once all sources have ended.
func (s *store[B]) join() {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make([]int, s.targets)
	total := 0
	for _, part := range s.parts {
		for _, b := range part {
			counts[b.target]++
		}
		total += len(part)
	}
	all := make([]*B, total)
	s.joined = make([][]*B, s.targets)
	for i, n := range counts {
		s.joined[i], all = all[:0:n], all[n:]
	}
	add := func(source int) {
		for _, b := range s.parts[source] {
			s.joined[b.target] = append(s.joined[b.target], b.block)
		}
	}
	if sabotage.On("shuffle-join-order") {
		for _, source := range s.ended {
			add(source)
		}
		return
	}
	for source := range s.parts {
		add(source)
	}
}

// enter begins a read of a target's blocks; the caller ends it with life.Leave.
func (s *store[B]) enter(target int) ([]*B, error) {
	if err := s.life.Enter(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joined == nil {
		s.life.Leave()
		return nil, fmt.Errorf("%s is read before its stage is complete: materialize it first", s.life.name)
	}
	return s.joined[target], nil
}

// free gives all blocks back; the life has seen that nobody reads them.
func (s *store[B]) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, part := range s.parts {
		s.recycle(part)
		s.parts[i] = nil
	}
	s.joined, s.ended = nil, nil
}

func (s *store[B]) recycle(part []placed[B]) {
	if s.list == nil {
		return
	}
	for _, b := range part {
		s.reset(b.block)
		s.list.Put(b.block)
	}
}

// writer is what the writers of rows and of chunks share: it takes blocks for
// the targets of one source.
type writer[B any] struct {
	t      *Task
	store  *store[B]
	list   *pool.FreeList[B]
	source int
	limit  int
	blocks []placed[B]
	done   bool
}

func newWriter[B any](t *Task, s *store[B], source int) writer[B] {
	return writer[B]{t: t, store: s, list: s.begin(t, source), source: source, limit: t.Pools.blockLimit()}
}

// take begins a new block for target. It is called once per block, so this is
// where cancellation is seen.
func (w *writer[B]) take(target int) (*B, error) {
	if err := w.t.check(); err != nil {
		return nil, err
	}
	var b *B
	if w.list != nil {
		b = w.list.Get()
	} else {
		b = new(B)
	}
	w.blocks = append(w.blocks, placed[B]{b, target})
	return b, nil
}

// close hands the blocks over, or gives them back if the attempt failed or
// panicked: it is deferred.
func (w *writer[B]) close() {
	if w.done {
		w.store.end(w.source, w.blocks)
		return
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.recycle(w.blocks)
	w.blocks = nil
}

// originMark says that from row at on, rows come from this stream and partition.
type originMark struct {
	at                int
	stream, partition string
}

// marks name the origins of a block's rows. Nearly always there is one mark; more
// only where rows of several sources were mixed before.
type marks []originMark

func (m *marks) add(at int, o *Origin) {
	if n := len(*m); n > 0 && (*m)[n-1].at == at { // nothing was written since
		(*m)[n-1] = originMark{at, o.Stream, o.Partition}
		return
	}
	*m = append(*m, originMark{at, o.Stream, o.Partition})
}

func (m marks) find(i int) (stream, partition string) {
	at, ok := slices.BinarySearchFunc(m, i, func(k originMark, i int) int { return k.at - i })
	if !ok {
		at--
	}
	invariants.Check(at >= 0, "rdd: row %d has no origin", i)
	return m[at].stream, m[at].partition
}
