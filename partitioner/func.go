package partitioner

import (
	"errors"
	"fmt"
)

// Func returns a partitioner that calls f. The name stands for the function:
// two Funcs with equal names and numbers are taken as equal, and the name is
// stored with the state. f must depend on nothing but the key and return 0 to
// n-1; anything else is an error of the record (see [Of]).
func Func[K comparable](name string, n int, f func(K) int) Partitioner[K] {
	return &custom[K]{name: name, n: n, f: f}
}

type custom[K comparable] struct {
	name string
	n    int
	f    func(K) int
}

// Partitions is the number of partitions.
func (p *custom[K]) Partitions() int { return p.n }

// Partition is what the function gives.
func (p *custom[K]) Partition(key K) int {
	if p.f == nil {
		return 0
	}
	return p.f(key)
}

// Equal goes by name and number: functions cannot be compared.
func (p *custom[K]) Equal(other Partitioner[K]) bool {
	o, ok := other.(*custom[K])
	return ok && o.name == p.name && o.n == p.n
}

// String is the partitioner's name and number, as checkpoints store it.
func (p *custom[K]) String() string { return fmt.Sprintf("func %q(%d)", p.name, p.n) }

func (p *custom[K]) check() error {
	switch {
	case p.name == "":
		return errors.New("no name; it identifies the function in stored state")
	case p.f == nil:
		return errors.New("the function is nil")
	}
	return nil
}

// ErrPartition is the class of [PartitionError].
var ErrPartition = errors.New("partition out of range")

// PartitionError is the fault of a record whose key the user's function put
// outside of the partitions there are. It wraps [ErrPartition].
type PartitionError struct {
	// Partitioner is the name of the partitioner.
	Partitioner string
	// Key is the record's key.
	Key any
	// Got is what the function returned; Partitions how many there are.
	Got, Partitions int
}

// Error names the partitioner, the key and both numbers.
func (e *PartitionError) Error() string {
	return fmt.Sprintf("partitioner %s: key %v: %v: got %d, want 0 to %d; mend the function",
		e.Partitioner, e.Key, ErrPartition, e.Got, e.Partitions-1)
}

// Unwrap returns ErrPartition.
func (e *PartitionError) Unwrap() error { return ErrPartition }

// Of returns the partition of key, or a *PartitionError if p puts it out of
// range.
func Of[K comparable](p Partitioner[K], key K) (int, error) {
	i := p.Partition(key)
	if n := p.Partitions(); uint(i) >= uint(n) {
		return 0, OutOfRange(p, key, i)
	}
	return i, nil
}

// OutOfRange makes the error for callers that check the range themselves, as
// loops over records do.
func OutOfRange[K comparable](p Partitioner[K], key K, got int) error {
	return &PartitionError{Partitioner: p.String(), Key: key, Got: got, Partitions: p.Partitions()}
}
