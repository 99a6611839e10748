package rdd

import "reflect"

// Rows is a block of up to 256 rows of a shuffle, by columns. It belongs to the
// shuffle: readers must not change it nor use it once they have left.
type Rows[K, V any] struct {
	// N is the number of rows.
	N int
	// Hash is the stable 64-bit hash of the key's canonical bytes.
	Hash [blockRows]uint64
	// Key and Value are the record.
	Key   [blockRows]K
	Value [blockRows]V
	// Offset is the offset of the record's origin.
	Offset [blockRows]int64
	// Source is the partition of the shuffled dataset that the rows come from.
	Source int

	from marks
}

// Origin is the origin of row i.
func (b *Rows[K, V]) Origin(i int) Origin {
	s, p := b.from.find(i)
	return Origin{Stream: s, Partition: p, Offset: b.Offset[i&(blockRows-1)]}
}

// At moves the task's cursor to row i. Loops call it for every row from 0 on;
// but for the first row and mixed blocks it is one store.
func (b *Rows[K, V]) At(t *Task, i int) {
	t.Origin.Offset = b.Offset[i&(blockRows-1)]
	if i == 0 || len(b.from) > 1 {
		t.Origin.Stream, t.Origin.Partition = b.from.find(i)
	}
}

// rowsReset returns what makes a block fit for reuse. Only what can keep other
// memory alive is cleared.
func rowsReset[K, V any]() func(*Rows[K, V]) {
	keys, values := hasPointers(reflect.TypeFor[K]()), hasPointers(reflect.TypeFor[V]())
	return func(b *Rows[K, V]) {
		if keys {
			clear(b.Key[:b.N])
		}
		if values {
			clear(b.Value[:b.N])
		}
		clear(b.from)
		b.from = b.from[:0]
		b.N = 0
	}
}
