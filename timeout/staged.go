package timeout

import "math"

// dropped is the target of a visited slot that is not live; bucket numbers are
// all above it.
const dropped = math.MinInt64

// staged is what the version in progress wants to change.
type staged struct {
	adds []uint32 // slots of Add, in order
	runs []run    // their buckets: inserts of one batch share one
	// minAdd is the least bucket among adds, so that a pass need not look at
	// them when none can be due.
	minAdd int64

	passed     bool
	limit      int64    // the pass went through all buckets up to here
	addsBefore int      // adds staged before the pass
	visited    []uint32 // slots that the pass visited, each once
	target     []int64  // their buckets from now on, or dropped
	seen       bitset   // the slots in visited
}

type run struct {
	bucket int64
	n      int
}

func (s *staged) stage(slot uint32, b int64) {
	if len(s.adds) == 0 || b < s.minAdd {
		s.minAdd = b
	}
	s.adds = append(s.adds, slot)
	if n := len(s.runs); n > 0 && s.runs[n-1].bucket == b {
		s.runs[n-1].n++
		return
	}
	s.runs = append(s.runs, run{bucket: b, n: 1})
}

// eachAdd calls f with the number, slot and bucket of each staged add; those
// staged by f itself are not among them.
func (s *staged) eachAdd(f func(i int, slot uint32, b int64)) {
	adds, runs := s.adds, len(s.runs)
	for r, i := 0, 0; r < runs; r++ {
		for k := s.runs[r].n; k > 0 && i < len(adds); k-- {
			f(i, adds[i], s.runs[r].bucket)
			i++
		}
	}
}

func (s *staged) forgetPass() {
	for _, slot := range s.visited {
		s.seen.clear(slot)
	}
	s.passed, s.addsBefore = false, 0
	s.visited, s.target = s.visited[:0], s.target[:0]
}

func (s *staged) forgetAdds() {
	s.adds, s.runs, s.minAdd = s.adds[:0], s.runs[:0], math.MaxInt64
}

// trim gives back scratch memory that one large round left behind.
func (s *staged) trim(entries int) {
	keep := entries/8 + 1<<12
	if cap(s.visited) > keep || cap(s.target) > keep {
		s.visited, s.target = nil, nil
	}
	if cap(s.adds) > keep || cap(s.runs) > keep {
		s.adds, s.runs = nil, nil
	}
}
