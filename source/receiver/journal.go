package receiver

import (
	"context"
	"errors"
	"sort"
	"sync"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// journal is the log without record types. Its methods may be called from any
// goroutine.
type journal struct {
	fs           vfs.FS
	dir          string
	segmentBytes int64
	maxBytes     int64 // of segments together; who appends beyond it waits
	maxBlock     int64 // of a payload

	tidying sync.Mutex // held by who removes files

	mu       sync.Mutex
	changed  chan struct{} // closed and made anew when something that one waits for changes
	segments []*segment    // oldest first; records of one end where the next begins
	gone     []*segment    // files to be removed: see tidy
	number   uint64        // of the newest segment
	file     vfs.File      // the newest segment's, nil if it must not be written to
	durable  int64         // the next offset, up to which all is synced
	pending  *group        // calls that wait for the next write
	writing  bool          // one of the callers writes for all
	draining bool          // nobody waits for room any more
	closed   bool
}

// segment is a file of the log.
type segment struct {
	path   string
	layout layout
	first  int64
	size   int64 // of its whole blocks, with the head
	blocks []mark
	broken int64 // where a block is that had been synced and has changed; 0: none
}

// mark tells where a block begins.
type mark struct{ first, at int64 }

// group is what several callers append in one block.
type group struct {
	data  []byte // of a block, its head not filled in
	count int
	done  bool
	err   error
}

var errClosed = errors.New("the log is closed")

// wake tells all who wait. mu is held.
func (j *journal) wake() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// wait waits for a change. mu is held, and held again afterwards.
func (j *journal) wait(ctx context.Context) error {
	changed := j.changed
	j.mu.Unlock()
	defer j.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// append makes records durable, in the order of the calls. Whoever finds nobody
// writing writes for all who came meanwhile.
func (j *journal) append(ctx context.Context, records [][]byte) error {
	if len(records) == 0 {
		return ctx.Err()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	// Each write empties the group, and no call needs more than half of it (see store).
	for size := sizeOfPayload(records); !j.closed && (j.full() || !j.fits(size)); {
		if j.draining && j.full() {
			return errClosed
		}
		if err := j.wait(ctx); err != nil {
			return err
		}
	}
	if j.closed {
		return errClosed
	}
	if j.pending == nil {
		j.pending = &group{data: beginBlock(nil)}
	}
	g := j.pending
	for _, r := range records {
		g.data = appendRecord(g.data, r)
		g.count++
	}
	for !g.done && (j.writing || j.pending != g) {
		// Not given up when ctx ends: the records are in the group, so their fate
		// is decided by it, and the caller shall know it.
		_ = j.wait(context.WithoutCancel(ctx))
	}
	if !g.done {
		j.write(g)
	}
	return g.err
}

// fits says that so many bytes of payload may join the group that is gathered: a block
// that is longer than maxBlock would not be read back.
func (j *journal) fits(size int64) bool {
	return j.pending == nil || int64(len(j.pending.data)-blockHead)+size <= j.maxBlock || sabotage.On("receiver-groups-unbounded")
}

// full says that no more may be kept. The newest segment alone is never too much.
func (j *journal) full() bool {
	n := int64(0)
	for _, s := range j.segments {
		n += s.size
	}
	for _, s := range j.gone {
		n += s.size
	}
	return n >= j.maxBytes && len(j.segments) > 1
}

// isFull says the same to others.
func (j *journal) isFull() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.full()
}

// bounds are the oldest offset that is kept, and the next one.
func (j *journal) bounds() (oldest, next int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.segments[0].first, j.durable
}

// piece is a part of a segment to read: blocks from at on, records below until.
type piece struct {
	path      string
	layout    layout
	at, size  int64
	from, end int64
}

// pieces says where the records [from, until) are.
func (j *journal) pieces(from, until int64) []piece {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []piece
	for i, s := range j.segments {
		end := j.durable
		if i+1 < len(j.segments) {
			end = j.segments[i+1].first
		}
		lo, hi := max(from, s.first), min(until, end)
		if lo >= hi {
			continue
		}
		k := sort.Search(len(s.blocks), func(k int) bool { return s.blocks[k].first > lo }) - 1
		out = append(out, piece{path: s.path, layout: s.layout, at: s.blocks[k].at, size: s.size, from: lo, end: hi})
	}
	return out
}

// drain lets nobody wait for room any more, which only a batch could make.
func (j *journal) drain() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.draining = true
	j.wake()
}

// shut lets nobody begin to append any more.
func (j *journal) shut() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	j.wake()
}
