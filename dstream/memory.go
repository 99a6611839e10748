package dstream

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/statemill/statemill/internal/sabotage"
)

// ErrStateMemory is the class of every *StateMemoryError.
var ErrStateMemory = errors.New("dstream: the limit of state memory is reached")

// OperatorMemory is what one stateful operator takes.
type OperatorMemory struct {
	Operator string
	// Bytes are those of the state maps and of what keys and states point to, each
	// key with its own size.
	Bytes int64
	Keys  int64
}

// StateMemory is what all stateful operators take, the largest first.
type StateMemory struct {
	Bytes, Limit int64
	Operators    []OperatorMemory
}

func (m StateMemory) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "state takes %d of %d bytes", m.Bytes, m.Limit)
	for i, o := range m.Operators {
		if i == 3 {
			b.WriteString("; …")
			break
		}
		fmt.Fprintf(&b, "; operator %q %d bytes, %d keys", o.Operator, o.Bytes, o.Keys)
	}
	return b.String()
}

// StateMemoryError says that state would take more than WithStateMemoryLimit
// allows. The epoch is given up as a whole; the state before it stands.
type StateMemoryError struct {
	// Operator is the one that was growing, with its Bytes and Keys.
	Operator    string
	Bytes, Keys int64
	// Limit is that of all operators together, and State what they take.
	Limit int64
	State StateMemory
}

func (e *StateMemoryError) Error() string {
	return fmt.Sprintf("%v: operator %q has grown to %d bytes with %d keys, the limit for all is %d (%v): "+
		"raise WithStateMemoryLimit if the machine has the memory, give the operator a Timeout or remove keys, or cap batches by WithMaxRecordsPerBatch",
		ErrStateMemory, e.Operator, e.Bytes, e.Keys, e.Limit, e.State)
}

// Is makes errors.Is(err, ErrStateMemory) true.
func (e *StateMemoryError) Is(target error) bool { return target == ErrStateMemory }

// WithStateMemoryLimit bounds the memory that the states of all operators take
// together, in bytes: that of their newest versions, measured within about a tenth.
// Keys and states that point to memory are measured one by one when they change,
// so a few large ones among many small ones count in full. A changed []byte costs
// tens of nanoseconds, a map with string keys about a tenth of a microsecond for
// each entry, before and after; types that point to nothing cost nothing. While a batch's tasks run, keys are taken to be of the mean
// size of the batch before: states that grow much within one batch are found at
// its end, so leave room for one batch, or set GOMEMLIMIT beside it.
// A batch that would pass the limit fails whole, with a *StateMemoryError, instead
// of the process being killed; from four fifths on, Listener.StateMemoryHigh warns.
// The process needs memory beyond it: for the batch's records, the garbage
// collector, and the changes of a running batch. Default: no limit.
func WithStateMemoryLimit(bytes int64) ContextOption {
	return option("WithStateMemoryLimit", func(c *config) error {
		c.memoryLimit = bytes
		if bytes < 1 {
			return fmt.Errorf("the limit of state memory is %d bytes: want at least 1; leave the option out for no limit", bytes)
		}
		return nil
	})
}

// meter adds up the memory of states. Tasks and the driver call it.
type meter struct {
	limit int64

	mu    sync.Mutex
	parts map[*node][]partMemory
	total int64
	high  bool // the warning was given
}

type partMemory struct {
	heap, keys int64
	perKey     float64 // bytes that a key points to, on the average when last measured
}

func (p partMemory) bytes() int64 { return p.heap + int64(p.perKey*float64(p.keys)) }

func newMeter(limit int64) *meter {
	if limit == 0 {
		return nil
	}
	return &meter{limit: limit, parts: map[*node][]partMemory{}}
}

// reset forgets all: the run begins anew.
func (m *meter) reset() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.parts)
	m.total = 0
}

// observe takes note of a partition as it is now. perKey below 0 leaves the last
// estimate. It is an error if all together are above the limit.
func (m *meter) observe(n *node, partition int, heap, keys int64, perKey float64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.parts[n]) <= partition {
		m.parts[n] = append(m.parts[n], partMemory{})
	}
	p := &m.parts[n][partition]
	m.total -= p.bytes()
	p.heap, p.keys = heap, keys
	if perKey >= 0 {
		p.perKey = perKey
	}
	m.total += p.bytes()
	if m.total <= m.limit || sabotage.On("memory-not-limited") {
		return nil
	}
	of := m.of(n)
	return &StateMemoryError{Operator: of.Operator, Bytes: of.Bytes, Keys: of.Keys, Limit: m.limit, State: m.state()}
}

// of sums an operator up; mu is held.
func (m *meter) of(n *node) OperatorMemory {
	o := OperatorMemory{Operator: n.label()}
	for _, p := range m.parts[n] {
		o.Bytes += p.bytes()
		o.Keys += p.keys
	}
	return o
}

// state sums all up; mu is held.
func (m *meter) state() StateMemory {
	s := StateMemory{Bytes: m.total, Limit: m.limit}
	for n := range m.parts {
		s.Operators = append(s.Operators, m.of(n))
	}
	slices.SortFunc(s.Operators, func(a, b OperatorMemory) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Operator, b.Operator))
	})
	return s
}

// bytes is what an operator takes.
func (m *meter) bytes(n *node) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(n).Bytes
}

// warning is due once when four fifths are passed, and again after it was well
// below that.
func (m *meter) warning() (s StateMemory, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.total > m.limit/5*4 && !m.high:
		m.high = true
		return m.state(), true
	case m.total < m.limit/10*7:
		m.high = false
	}
	return s, false
}

// measure takes note of what an operator takes after its stage.
func (r *run) measure(n *node) error {
	if r.meter == nil {
		return nil
	}
	if err := n.op.measure(r.meter); err != nil {
		return err
	}
	if s, due := r.meter.warning(); due {
		return r.listen(func(l *Listener) {
			if l.StateMemoryHigh != nil {
				l.StateMemoryHigh(s)
			}
		})
	}
	return nil
}
