package receiver

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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
	gone     []*segment    // files to be removed, oldest first: see tidy
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

// write writes a group, without mu while it does I/O. mu is held around it.
func (j *journal) write(g *group) {
	j.writing, j.pending = true, nil
	j.wake() // who did not fit into this group begins the next
	first := j.durable
	j.mu.Unlock()
	err := j.put(g, first)
	j.mu.Lock()
	if err != nil {
		// What of it is in the file is not known, so the file is not used again.
		if j.file != nil {
			_ = j.file.Close()
			j.file = nil
		}
		err = fmt.Errorf("receiver log %s: %d records from offset %d on: %w", j.dir, g.count, first, err)
	} else {
		s := j.segments[len(j.segments)-1]
		s.blocks = append(s.blocks, mark{first, s.size})
		s.size += int64(len(g.data))
		j.durable += int64(g.count)
	}
	g.err, g.done, g.data = err, true, nil
	j.writing = false
	j.wake()
}

// put writes and syncs a group; only one goroutine is here.
func (j *journal) put(g *group, first int64) error {
	if j.file == nil || j.newest().size >= j.segmentBytes {
		if err := j.roll(first); err != nil {
			return err
		}
	}
	s := j.newest()
	endBlock(g.data, s.layout.salt, s.size, first, g.count)
	if _, err := j.file.Write(g.data); err != nil {
		return err
	}
	if sabotage.On("receiver-no-sync") {
		return nil
	}
	return j.file.Sync()
}

func (j *journal) newest() *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.segments[len(j.segments)-1]
}

// roll begins a segment at an offset. If that fails, nothing is left of it.
func (j *journal) roll(first int64) error {
	if j.file != nil {
		err := j.file.Close()
		j.file = nil
		if err != nil {
			return err
		}
	}
	j.number++ // also if what follows fails: a name is used once
	path := filepath.Join(j.dir, segmentName(j.number))
	l := layout{version: version, salt: newSalt()}
	f, err := j.begin(path, appendHead(nil, first, l.salt))
	if err != nil {
		if !errors.Is(err, fs.ErrExist) { // which is nobody's here, but not ours to remove
			j.discard(path)
		}
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.file = f
	j.segments = append(j.segments, &segment{path: path, layout: l, first: first, size: headSize})
	return nil
}

// newSalt is a number that no sender knows; it cannot fail.
func newSalt() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// begin makes a segment's file, durable with its name.
func (j *journal) begin(path string, head []byte) (vfs.File, error) {
	f, err := j.fs.Create(path)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(head)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = j.fs.SyncDir(j.dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
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

// close closes the file, after what is being appended. It comes after shut.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	for j.writing || j.pending != nil { // of a receiver that left goroutines behind
		if err := j.wait(context.Background()); err != nil {
			return err
		}
	}
	if j.file == nil {
		return nil
	}
	f := j.file
	j.file = nil
	// The mark is worth having, but nothing is lost without it.
	s, end := j.segments[len(j.segments)-1], beginBlock(nil)
	endBlock(end, s.layout.salt, s.size, j.durable, 0)
	if _, err := f.Write(end); err == nil {
		_ = f.Sync()
	}
	return f.Close()
}
