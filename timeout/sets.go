package timeout

// bitset is a set of slots that grows as needed.
type bitset []uint64

func (s bitset) has(i uint32) bool {
	w := int(i >> 6)
	return w < len(s) && s[w]&(1<<(i&63)) != 0
}

// set adds i and reports whether it was absent.
func (s *bitset) set(i uint32) bool {
	w := int(i >> 6)
	for w >= len(*s) {
		*s = append(*s, make([]uint64, max(8, len(*s)/4))...)
	}
	bit := uint64(1) << (i & 63)
	old := (*s)[w]
	(*s)[w] = old | bit
	return old&bit == 0
}

func (s bitset) clear(i uint32) {
	if w := int(i >> 6); w < len(s) {
		s[w] &^= 1 << (i & 63)
	}
}

// heap is a binary heap of bucket numbers, the least first. It is written out
// because container/heap would box every number.
type heap []int64

func (h *heap) push(b int64) {
	*h = append(*h, b)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up] <= s[i] {
			return
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
}

func (h *heap) pop() int64 {
	s := *h
	least := s[0]
	n := len(s) - 1
	s[0] = s[n]
	s = s[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && s[c+1] < s[c] {
			c++
		}
		if s[i] <= s[c] {
			break
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
	*h = s
	return least
}

// walk calls f for every number up to limit without changing the heap: a
// subtree whose root is beyond the limit is skipped, so it looks at no more than
// twice as many numbers as it finds, however far the limit lies.
func (h heap) walk(limit int64, f func(b int64)) { h.walkFrom(0, limit, f) }

func (h heap) walkFrom(i int, limit int64, f func(b int64)) {
	if i >= len(h) || h[i] > limit {
		return
	}
	f(h[i])
	h.walkFrom(2*i+1, limit, f)
	h.walkFrom(2*i+2, limit, f)
}
