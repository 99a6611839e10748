package statefile

// rows gathers the columns of the block that is being written.
type rows struct {
	n      int      // rows
	tombs  int      // of them
	lens   []uint64 // key length << 1 | tombstone
	keys   []byte
	times  []int64  // of the rows that are no tombstones
	sizes  []uint64 // state lengths, of the rows that have a state
	states []byte

	raw   []byte
	forms []uint64
	nums  []uint64
}

func (r *rows) reset() {
	r.n, r.tombs = 0, 0
	r.lens, r.times, r.sizes = r.lens[:0], r.times[:0], r.sizes[:0]
	r.keys, r.states, r.raw = keep(r.keys)[:0], keep(r.states)[:0], keep(r.raw)[:0]
}

// full tells that the block is to be written before more rows come.
func (r *rows) full() bool { return r.n == blockRecords || len(r.keys)+len(r.states) >= blockBytes }

// block puts the columns together.
func (r *rows) block(info *Info) []byte {
	b := appendColumn(r.raw[:0], r.lens)
	b = append(b, r.keys...)
	b, r.forms, r.nums = appendTimes(b, info, r.times, r.forms, r.nums)
	b = appendColumn(b, r.sizes)
	r.raw = append(b, r.states...)
	return r.raw
}
