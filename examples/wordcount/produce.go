package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

const (
	// maxLine is the longest line: Go's own source has one of 1.5 MB.
	maxLine = 8 << 20
	// largestRequest fits one; a broker takes a mebibyte if it is not told.
	largestRequest = maxLine + 1<<10
	// The text waits in a buffer of this size until it is written; a line that is
	// larger has it for itself.
	bufferBytes = 1 << 20
)

// producer writes the lines of a text to a topic, one record a line, while the job
// counts them. The lines go to the partitions in turn: line i is record i/n of
// partition i%n. So the ends of the partitions tell which lines are in the topic,
// also after a kill that let a part of the last lines through, and a producer goes on
// with those that are not.
type producer struct {
	lines atomic.Int64  // in the topic so far, those of earlier runs too
	done  chan struct{} // closed when nothing more will be written
	err   error         // valid after done, as
	ended time.Time     // when it was

	to      topicWriter
	have    []int64 // how many lines each partition had at the start
	line    int64   // the number of the next one
	waiting []int   // how many lines wait, by partition
	records []kafkago.Message
	buf     []byte // the lines of records
}

// produce writes the lines that are not in the topic yet; have says how many there
// are in each of its partitions. attempts is how often a request is tried: after an
// answer that was lost a second one doubles records.
func produce(ctx context.Context, brokers []string, topic string, have []int64, attempts int, t *text) *producer {
	p := &producer{
		done:    make(chan struct{}),
		to:      writeTo(brokers, topic, kafkago.BalancerFunc(inPlace), largestRequest, attempts),
		have:    have,
		waiting: make([]int, len(have)),
	}
	p.lines.Store(sum(have))
	go func() {
		defer close(p.done)
		err := t.each(func(r io.Reader) error { return p.read(ctx, r) })
		if err == nil {
			err = p.flush(ctx)
		}
		p.err, p.ended = errors.Join(err, p.to.Close()), time.Now()
	}()
	return p
}

// inPlace gives the partition that add chose.
func inPlace(m kafkago.Message, _ ...int) int { return m.WriterData.(int) }

// finished says how many lines there are in all, once that is known.
func (p *producer) finished() (lines int64, ok bool) {
	select {
	case <-p.done:
		return p.lines.Load(), true
	default:
		return 0, false
	}
}

// wait waits for the end of the writing, which comes soon after its context is
// cancelled, unless it waits for a text that does not come, such as a terminal:
// then it gives false.
func (p *producer) wait() bool {
	select {
	case <-p.done:
		return true
	case <-time.After(2 * time.Second):
		return false
	}
}

// read takes the lines of one reader. The last one needs no line end.
func (p *producer) read(ctx context.Context, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	lines.Split(scanLines)
	n := 0
	for ; lines.Scan(); n++ {
		if err := p.add(ctx, lines.Bytes()); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d has more than %d bytes, too many for one record", n+1, maxLine)
	}
	return lines.Err()
}

// add takes the next line of the text.
func (p *producer) add(ctx context.Context, line []byte) error {
	n := int64(len(p.have))
	at, part := p.line/n, int(p.line%n)
	p.line++
	if at < p.have[part] {
		return nil
	}
	// What waits is one request for each partition, so that a request which fails
	// leaves no hole behind it.
	if p.waiting[part] == requestLines || len(p.buf)+len(line) > bufferBytes {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	from := len(p.buf)
	// Where this grows buf, earlier records keep the old array.
	p.buf = append(p.buf, line...)
	p.records = append(p.records, kafkago.Message{Value: p.buf[from:len(p.buf):len(p.buf)], WriterData: part})
	p.waiting[part]++
	return nil
}

// flush writes the records and waits until the broker has them; then their bytes
// are free again.
func (p *producer) flush(ctx context.Context) error {
	if len(p.records) == 0 {
		return nil
	}
	if err := p.to.WriteMessages(ctx, p.records...); err != nil {
		return fmt.Errorf("write to topic %q: %w", p.to.Topic, err)
	}
	p.lines.Add(int64(len(p.records)))
	p.records, p.buf = p.records[:0], p.buf[:0]
	clear(p.waiting)
	return nil
}

// scanLines cuts at "\n" and leaves all other bytes as they are.
func scanLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func sum(all []int64) (n int64) {
	for _, v := range all {
		n += v
	}
	return n
}
