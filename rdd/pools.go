package rdd

import (
	"reflect"
	"sync"
	"unsafe"

	"github.com/statemill/statemill/internal/pool"
)

// blockRows is the number of rows of a block. A power of two, so that indexes
// need no bounds check.
const blockRows = 256

// poolBytes bounds what is kept of one type of block: about 1.6 million rows of
// string keys and integers. A larger batch, after a pause say, allocates and drops the rest.
const poolBytes = 64 << 20

// Pools keeps the row blocks of a run for reuse. A run makes one and its
// executor puts it into every Task. The zero value is ready; methods may be called from any
// goroutine.
type Pools struct {
	mu    sync.Mutex
	lists map[reflect.Type]any

	rows int // rows per block, 0 means blockRows: tests make blocks small
}

func (p *Pools) blockLimit() int {
	if p == nil || p.rows == 0 {
		return blockRows
	}
	return p.rows
}

// listOf finds the free list for B, once per task. It is nil without pools.
func listOf[B any](p *Pools) *pool.FreeList[B] {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := reflect.TypeFor[B]()
	if l, ok := p.lists[t]; ok {
		return l.(*pool.FreeList[B])
	}
	if p.lists == nil {
		p.lists = map[reflect.Type]any{}
	}
	var zero B
	l := &pool.FreeList[B]{Max: max(16, int(poolBytes/max(1, unsafe.Sizeof(zero))))}
	p.lists[t] = l
	return l
}

// hasPointers says whether values of T can keep memory alive: blocks of such
// types are cleared before they are kept for reuse.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	}
	return true
}
