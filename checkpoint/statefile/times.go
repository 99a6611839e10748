package statefile

import (
	"encoding/binary"
	"errors"
	"math"
)

// The times of a block. Without deadlines each entry's time is written as its
// age: batch time − time, in 64-bit arithmetic that wraps around, so that any
// time can be written:
//
//	unit     uvarint, nanoseconds: the greatest common divisor of the ages, 1 if all are 0
//	ages     column, in units
//
// So what a batch updated takes no bytes per entry, and what earlier batches
// updated takes the number of batches since.
//
// With deadlines an entry's time t is what keyed operators put there: a
// deadline ≥ 0 with state; the greatest int64 for state without a deadline; ^d,
// which is negative, for a deadline d without state.
//
//	forms    column: 0 state alone, 1 state and deadline, 2 deadline alone
//	unit     uvarint, nanoseconds; of the gaps, if there is one
//	gaps     column, in units: the zigzag form of deadline − batch time, of those that have a deadline
//
// An entry of form 2 has no state in the file; read, it has the zero state.
const (
	formState    = 0
	formBoth     = 1
	formDeadline = 2
)

// noDeadline is the time of a state without a deadline.
const noDeadline = math.MaxInt64

// splitDeadline gives form and deadline of an entry time; joinDeadline takes
// them together again, for every int64.
func splitDeadline(t int64) (form uint64, deadline int64) {
	switch {
	case t < 0:
		return formDeadline, ^t
	case t == noDeadline:
		return formState, 0
	}
	return formBoth, t
}

func joinDeadline(form uint64, deadline int64) int64 {
	switch form {
	case formDeadline:
		return ^deadline
	case formState:
		return noDeadline
	}
	return deadline
}

// appendTimes appends the times column; forms and nums are scratch space.
func appendTimes(b []byte, info *Info, times []int64, forms, nums []uint64) (_ []byte, f, n []uint64) {
	forms, nums = forms[:0], nums[:0]
	if !info.Deadlines {
		for _, t := range times {
			nums = append(nums, uint64(info.BatchTime)-uint64(t))
		}
		return appendUnits(b, nums), forms, nums
	}
	for _, t := range times {
		form, d := splitDeadline(t)
		forms = append(forms, form)
		if form != formState {
			nums = append(nums, zigzag(int64(uint64(d)-uint64(info.BatchTime))))
		}
	}
	b = appendColumn(b, forms)
	return appendUnits(b, nums), forms, nums
}

func appendUnits(b []byte, nums []uint64) []byte {
	if len(nums) == 0 {
		return b
	}
	u := unitOf(nums)
	b = binary.AppendUvarint(b, u)
	if u > 1 {
		for i := range nums {
			nums[i] /= u
		}
	}
	return appendColumn(b, nums)
}

// unitOf gives the greatest common divisor, 1 for none.
func unitOf(nums []uint64) uint64 {
	var u, last uint64
	for _, v := range nums {
		if v == last || u > 0 && v%u == 0 {
			continue
		}
		last = v
		for a := v; a != 0; {
			u, a = a, u%a
		}
		if u == 1 {
			break
		}
	}
	return max(u, 1)
}

var (
	errUnit = errors.New("the unit of the times is missing or 0")
	errForm = errors.New("the form of a deadline is unknown")

	errDeadline = errors.New("a deadline is negative")
)

// readTimes fills times from the head of b and gives the rest; forms has as
// many numbers and tells, with deadlines, which entries have a state.
func readTimes(b []byte, info *Info, times []int64, forms, nums []uint64) ([]byte, error) {
	var err error
	if !info.Deadlines {
		nums = nums[:len(times)]
		if b, err = readUnits(b, nums); err != nil {
			return nil, err
		}
		for i, v := range nums {
			times[i] = int64(uint64(info.BatchTime) - v)
		}
		return b, nil
	}
	if b, err = readColumn(b, forms); err != nil {
		return nil, err
	}
	n := 0
	for _, f := range forms {
		if f > formDeadline {
			return nil, errForm
		}
		if f != formState {
			n++
		}
	}
	nums = nums[:n]
	if b, err = readUnits(b, nums); err != nil {
		return nil, err
	}
	for i, f := range forms {
		var d int64
		if f != formState {
			d = int64(uint64(unzigzag(nums[0])) + uint64(info.BatchTime))
			nums = nums[1:]
			if d < 0 {
				return nil, errDeadline
			}
		}
		times[i] = joinDeadline(f, d)
	}
	return b, nil
}

func readUnits(b []byte, nums []uint64) ([]byte, error) {
	if len(nums) == 0 {
		return b, nil
	}
	u, n := binary.Uvarint(b)
	if n <= 0 || u == 0 {
		return nil, errUnit
	}
	b, err := readColumn(b[n:], nums)
	if err != nil {
		return nil, err
	}
	if u > 1 {
		for i := range nums {
			nums[i] *= u
		}
	}
	return b, nil
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
