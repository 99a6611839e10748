package pool

import "sync"

// defaultMax is the number of values a FreeList keeps when Max is zero.
const defaultMax = 64

// FreeList keeps values for reuse. Unlike sync.Pool it gives nothing back to
// the garbage collector by itself, so what is allocated in steady state can be
// counted exactly. The zero value is ready for use; its methods may be called
// from any goroutine.
type FreeList[T any] struct {
	// Max is the most values kept: 0 means 64, a negative number none. Set it
	// before the first Put.
	Max int

	mu   sync.Mutex
	free []*T
}

// Get returns a kept value as it was when put, or a new zero value. The caller
// owns it until Put.
func (l *FreeList[T]) Get() *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.free)
	if n == 0 {
		return new(T)
	}
	v := l.free[n-1]
	l.free[n-1] = nil
	l.free = l.free[:n-1]
	return v
}

// Put keeps v for a later Get, or drops it when Max values are kept. The caller
// must not use v afterwards, and has cleared what v should not keep alive. A
// nil v is ignored.
func (l *FreeList[T]) Put(v *T) {
	if v == nil {
		return
	}
	most := l.Max
	if most == 0 {
		most = defaultMax
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) < most {
		l.free = append(l.free, v)
	}
}
