package source

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/sabotage"
)

// lineBuffer stands between a goroutine that reads something unrepeatable and the
// engine: it keeps every line until the epoch that read it is committed, and lets
// the reader wait when it is full. Lines are numbered from 0; there is one
// partition.
type lineBuffer struct {
	what      string // for messages
	partition string
	maxBytes  int64

	mu      sync.Mutex
	room    sync.Cond // lines were dropped, or closed; uses mu
	first   int64     // number of lines[0]
	lines   []string
	bytes   int64
	planned int64 // lines before it are in a plan
	begun   bool  // a plan was made, here or by an earlier run

	clock    clock.Clock
	progress time.Time // a read has moved, or a plan found nothing to read
	received int64     // lines
	trouble  string    // what is wrong now
	news     Notices
	err      error // the reader ended with it
	ended    bool  // the reader ended well
	closed   bool
	intake   intake
}

func newLineBuffer(what, partition string, maxBytes int64, last *Plan, k clock.Clock) *lineBuffer {
	b := &lineBuffer{what: what, partition: partition, maxBytes: maxBytes, clock: k}
	b.room.L = &b.mu
	if last != nil {
		for _, r := range last.Ranges {
			if r.Partition == partition {
				b.first, b.planned, b.begun = r.Until, r.Until, true
			}
		}
	}
	return b
}

// add appends a line; it waits while the buffer is full, and reports false when
// the source was closed or drained. A line larger than the buffer gets in alone, and
// so does what the reader has in hand when the source is drained.
func (b *lineBuffer) add(line string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := int64(len(line)) + 16 // a string header
	for !b.closed && !b.intake.draining && b.bytes > 0 && b.bytes+size > b.maxBytes {
		b.room.Wait()
	}
	if b.closed || b.intake.drained {
		return false
	}
	b.lines = append(b.lines, line)
	b.bytes += size
	b.received++
	return true
}

// number of the next line to come.
func (b *lineBuffer) next() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first + int64(len(b.lines))
}

// end says how the reader ended.
func (b *lineBuffer) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.intake.drained || errors.Is(err, errDrained) {
		return // the end that was asked for
	}
	b.err, b.ended = err, err == nil
	if err != nil {
		b.trouble = err.Error()
		b.news.Add(b.clock.Now(), b.trouble)
	}
}

// tell tells of something that happened; trouble is what is wrong from now on.
func (b *lineBuffer) tell(text, trouble string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trouble = trouble
	b.news.Add(b.clock.Now(), text)
}

// report is what is known: the lines that are kept are those that wait, or that an
// epoch reads which is not committed.
func (b *lineBuffer) report() Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := PartitionReport{Partition: b.partition, Next: -1, End: b.first + int64(len(b.lines)), Progress: b.progress}
	if b.begun {
		x.Next, x.Lag = b.first, int64(len(b.lines))
	}
	r := Report{Partitions: []PartitionReport{x}, Counters: map[string]int64{"lines": b.received}, Notices: b.news.All()}
	if b.trouble != "" && !b.closed {
		r.Warnings = []string{b.trouble}
	}
	return r
}

func (b *lineBuffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.lines, b.bytes = nil, 0
	b.room.Broadcast()
}

func (b *lineBuffer) plan(ctx context.Context, l Limits) (Plan, error) {
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return Plan{}, fmt.Errorf("%s: %w", b.what, ErrNotOpen)
	}
	waiting := b.first + int64(len(b.lines)) - b.planned
	if waiting == 0 && b.err != nil {
		return Plan{}, b.err // what came before it has been delivered
	}
	r := Range{Partition: b.partition, From: b.planned}
	if b.begun = true; waiting == 0 {
		b.progress = b.clock.Now()
	}
	b.planned += Share([]int64{fitting(b.lines[b.planned-b.first:], l.Bytes)}, l)[0]
	r.Until = b.planned
	if sabotage.On("buffer-freed-early") {
		b.drop(b.planned)
	}
	return Plan{Ranges: []Range{r}}, nil
}

// fitting is how many of the first lines keep within Limits.Bytes, at least one; each
// counts with an end of one byte.
func fitting(lines []string, most int64) (n int64) {
	switch {
	case most == NoLimit:
		return int64(len(lines))
	case most < 0:
		return 0
	}
	for i, line := range lines {
		if most -= int64(len(line)) + 1; most < 0 && i > 0 {
			return int64(i)
		}
	}
	return int64(len(lines))
}

func (b *lineBuffer) read(ctx context.Context, r Range, emit func(offset int64, line string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	lines, err := b.slice(r)
	if err != nil {
		return err
	}
	for i, line := range lines {
		if i&255 == 255 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := emit(r.From+int64(i), line); err != nil {
			return err
		}
	}
	if len(lines) > 0 {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.progress = b.clock.Now()
	}
	return nil
}

func (b *lineBuffer) slice(r Range) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, fmt.Errorf("%s: %w", b.what, ErrNotOpen)
	case r.Partition != b.partition || r.From < 0 || r.Until < r.From || r.Until > b.planned:
		return nil, &RangeError{Source: b.what, Range: r, Why: fmt.Sprintf("its only partition is %q, planned up to %d", b.partition, b.planned)}
	case r.From < b.first && r.From < r.Until:
		return nil, fmt.Errorf("%s: lines [%d, %d) were read and are gone, the first kept is %d: %w", b.what, r.From, r.Until, b.first, ErrNotReplayable)
	case r.From == r.Until:
		return nil, nil
	}
	return b.lines[r.From-b.first : r.Until-b.first : r.Until-b.first], nil
}

func (b *lineBuffer) committed(ctx context.Context, p Plan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range p.Ranges {
		if r.Partition == b.partition && !b.closed {
			b.drop(min(r.Until, b.planned))
		}
	}
	return nil
}

// drop forgets the lines before number n. The rest moves to a new slice: a Read
// may still hold the old one.
func (b *lineBuffer) drop(n int64) {
	k := n - b.first
	if k <= 0 {
		return
	}
	for _, line := range b.lines[:k] {
		b.bytes -= int64(len(line)) + 16
	}
	b.lines = append([]string(nil), b.lines[k:]...)
	b.first = n
	b.room.Broadcast()
}

func (b *lineBuffer) done() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended && b.planned == b.first+int64(len(b.lines))
}

// scan reads lines until add returns false (then it returns nil), the source is
// drained (errDrained) or r ends; a last line without an end counts if r ends with
// io.EOF, which scan returns.
func scan(r io.Reader, b *lineBuffer, maxLine int) error {
	b.scans(true)
	defer b.scans(false)
	in := bufio.NewReaderSize(b.taking(r), min(64<<10, max(maxLine, 16)))
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		n := len(line)
		if n > 0 && line[n-1] == '\n' {
			n--
		}
		if n > maxLine {
			return &LineTooLongError{Source: b.what, Offset: b.next(), Max: maxLine}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			if n > 0 && line[n-1] == '\r' {
				n--
			}
			if !b.add(string(line[:n])) {
				return nil
			}
			line = line[:0]
		}
		if err != nil {
			return err
		}
	}
}
