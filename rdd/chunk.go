package rdd

import "reflect"

// chunk is a block of rows that are not keyed.
type chunk[T any] struct {
	n      int
	row    [blockRows]T
	offset [blockRows]int64
	from   marks
}

func (c *chunk[T]) at(t *Task, i int) {
	t.Origin.Offset = c.offset[i&(blockRows-1)]
	if i == 0 || len(c.from) > 1 {
		t.Origin.Stream, t.Origin.Partition = c.from.find(i)
	}
}

func chunkReset[T any]() func(*chunk[T]) {
	refs := hasPointers(reflect.TypeFor[T]())
	return func(c *chunk[T]) {
		if refs {
			clear(c.row[:c.n])
		}
		clear(c.from)
		c.from = c.from[:0]
		c.n = 0
	}
}

// chunkWriter writes the rows of one source in turn to the targets; kept rows
// have one target.
type chunkWriter[T any] struct {
	writer[chunk[T]]
	cur    []*chunk[T]
	origin Origin
	base   int // the target that cur begins at
	next   int // where in cur the next row goes
	staged []T
}

// newChunkWriter writes to the n targets from base on, beginning with base+first.
func newChunkWriter[T any](t *Task, s *store[chunk[T]], source, base, n, first int) *chunkWriter[T] {
	return &chunkWriter[T]{
		writer: newWriter(t, s, source), cur: make([]*chunk[T], n),
		origin: t.Origin, base: base, next: first,
	}
}

// fill writes partition t.Partition of r and closes the writer.
func (w *chunkWriter[T]) fill(r *RDD[T]) error {
	defer w.close()
	err := r.compute(w.t, w.t.Partition, w.emitter())
	w.done = err == nil
	return err
}

func (w *chunkWriter[T]) emitter() func(T) error {
	if w.t.Guard == nil {
		return w.put
	}
	w.t.Guard.Enlist(w)
	return func(v T) error {
		w.staged = append(w.staged, v)
		return nil
	}
}

func (w *chunkWriter[T]) put(v T) error {
	if o := &w.t.Origin; !sameOrigin(o, &w.origin) {
		w.origin = *o
		for _, c := range w.cur {
			if c != nil {
				c.from.add(c.n, o)
			}
		}
	}
	c := w.cur[w.next]
	if c == nil || c.n >= w.limit {
		var err error
		if c, err = w.take(w.base + w.next); err != nil {
			return err
		}
		c.from.add(0, &w.origin)
		w.cur[w.next] = c
	}
	i := c.n & (blockRows - 1)
	c.row[i], c.offset[i] = v, w.t.Origin.Offset
	c.n = i + 1
	if w.next++; w.next == len(w.cur) {
		w.next = 0
	}
	return nil
}

// Flush writes what the record staged.
func (w *chunkWriter[T]) Flush() error {
	for _, v := range w.staged {
		if err := w.put(v); err != nil {
			return err
		}
	}
	w.Drop()
	return nil
}

// Drop forgets what the record staged.
func (w *chunkWriter[T]) Drop() {
	clear(w.staged)
	w.staged = w.staged[:0]
}

// readChunks is a leaf over the blocks of a store.
func readChunks[T any](s *store[chunk[T]], n int, name string) *RDD[T] {
	return leaf(n, name, func(t *Task, target int, emit func(T) error) error {
		chunks, err := s.enter(target)
		if err != nil {
			return err
		}
		defer s.life.Leave()
		for _, c := range chunks {
			if err := t.check(); err != nil {
				return err
			}
			for i := range c.n {
				c.at(t, i)
				if err := emit(c.row[i&(blockRows-1)]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
