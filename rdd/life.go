package rdd

import (
	"fmt"
	"sync"

	"github.com/statemill/statemill/internal/sabotage"
)

// Resource is data with a lifetime which datasets read. Retain adds a holder and
// fails with ErrReleased once the last one has let go; Release drops one.
type Resource interface {
	Retain() error
	Release()
}

// Life is the lifetime of some data: one owner and any number of further
// holders. When all have let go the data is free: new uses get ErrReleased, and
// what gives the memory back runs as soon as nobody reads any more. All methods
// may be called from any goroutine.
type Life struct {
	name string
	free func()

	mu      sync.Mutex
	closed  bool // the owner has let go
	holders int
	readers int
	freed   bool
}

// NewLife makes a Life held by its owner. name is used in errors; free (may be
// nil) is called once, when nobody holds or reads the data.
func NewLife(name string, free func()) *Life { return &Life{name: name, free: free} }

// Err is ErrReleased, wrapped with the name, once nobody holds the data.
func (l *Life) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err()
}

func (l *Life) err() error {
	if l.closed && l.holders == 0 && !sabotage.On("released-readable") {
		return fmt.Errorf("%s: %w", l.name, ErrReleased)
	}
	return nil
}

// Retain adds a holder.
func (l *Life) Retain() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.err(); err != nil {
		return err
	}
	l.holders++
	return nil
}

// Release drops one holder; without any it is the owner that lets go. Further
// calls do nothing.
func (l *Life) Release() {
	l.mu.Lock()
	if l.holders > 0 {
		l.holders--
	} else {
		l.closed = true
	}
	l.unlockAndFree()
}

// Close lets go for the owner. Further calls do nothing.
func (l *Life) Close() {
	l.mu.Lock()
	l.closed = true
	l.unlockAndFree()
}

// Enter begins a read, so that the data stays where it is until Leave; the data
// may be let go meanwhile. It fails with ErrReleased.
func (l *Life) Enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.err(); err != nil {
		return err
	}
	l.readers++
	return nil
}

// Leave ends a read that Enter began.
func (l *Life) Leave() {
	l.mu.Lock()
	l.readers--
	l.unlockAndFree()
}

func (l *Life) unlockAndFree() {
	free := l.closed && l.holders == 0 && l.readers == 0 && !l.freed && !sabotage.On("released-readable")
	l.freed = l.freed || free
	l.mu.Unlock()
	if free && l.free != nil {
		l.free()
	}
}
