package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

const (
	// maxLine is the longest line: Go's own source has one of 1.5 MB.
	maxLine = 8 << 20
	// largestRequest fits one; a broker takes a mebibyte if it is not told.
	largestRequest = maxLine + 1<<10
	// A request carries so many lines of one partition; the text waits in a
	// buffer of about this size until it is written.
	requestLines = 2000
	bufferBytes  = 1 << 20
	// kafkaTimeout bounds a question to the brokers.
	kafkaTimeout = 8 * time.Second
)

// topicWriter writes records to a topic, with a connection pool of its own.
type topicWriter struct {
	*kafkago.Writer
	transport *kafkago.Transport
}

func writeTo(brokers []string, topic string, balancer kafkago.Balancer, largest int64) topicWriter {
	transport := &kafkago.Transport{}
	return topicWriter{transport: transport, Writer: &kafkago.Writer{
		Addr:         kafkago.TCP(brokers...),
		Topic:        topic,
		Balancer:     balancer,
		RequiredAcks: kafkago.RequireAll, // also makes it wait, and tell errors
		BatchSize:    requestLines,
		BatchBytes:   largest,
		BatchTimeout: 5 * time.Millisecond, // for the last ones, which do not fill a request
		MaxAttempts:  5,
		Transport:    transport,
	}}
}

func (w topicWriter) Close() error {
	defer w.transport.CloseIdleConnections()
	return w.Writer.Close()
}

// producer writes the lines of a text to a topic, one record a line and in turn
// over the partitions, while the job counts them.
type producer struct {
	lines atomic.Int64  // written so far
	done  chan struct{} // closed when nothing more will be written
	err   error         // valid after done, as
	ended time.Time     // when it was

	to      topicWriter
	full    int // write when there are so many records
	records []kafkago.Message
	buf     []byte // the lines of records
}

func produce(ctx context.Context, brokers []string, topic string, partitions int, t *text) *producer {
	p := &producer{
		done: make(chan struct{}),
		to:   writeTo(brokers, topic, &kafkago.RoundRobin{}, largestRequest),
		full: partitions * requestLines,
	}
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
		at := len(p.buf)
		// Where this grows buf, earlier records keep the old array.
		p.buf = append(p.buf, lines.Bytes()...)
		p.records = append(p.records, kafkago.Message{Value: p.buf[at:len(p.buf):len(p.buf)]})
		if len(p.records) == p.full || len(p.buf) >= bufferBytes {
			if err := p.flush(ctx); err != nil {
				return err
			}
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d has more than %d bytes, too many for one record", n+1, maxLine)
	}
	return lines.Err()
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

// checkTopic says early whether a topic can be written to later.
func checkTopic(ctx context.Context, brokers []string, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, kafkaTimeout)
	defer cancel()
	transport := &kafkago.Transport{}
	defer transport.CloseIdleConnections()
	client := kafkago.Client{Addr: kafkago.TCP(brokers...), Transport: transport}
	m, err := client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			err = cause // without the name of the call
		}
		return fmt.Errorf("output topic %q at %s: %w", topic, strings.Join(brokers, ","), err)
	}
	for _, t := range m.Topics {
		if t.Name == topic && t.Error != nil {
			return fmt.Errorf("output topic %q at %s: %w", topic, strings.Join(brokers, ","), t.Error)
		}
	}
	return nil
}

// writeTotals writes every total as a record: the key is the word, the value the
// word, a tab and its count. It is a plain output, written at least once: if it
// fails, some are written, and a program that is started again writes all again.
func writeTotals(ctx context.Context, brokers []string, topic string, totals map[string]int64) (err error) {
	w := writeTo(brokers, topic, kafkago.Murmur2Balancer{Consistent: true}, 1<<20) // where Java's producer puts a key
	defer func() { err = errors.Join(err, w.Close()) }()
	for words := range slices.Chunk(slices.Sorted(maps.Keys(totals)), 4*requestLines) {
		records := make([]kafkago.Message, len(words))
		for i, word := range words {
			records[i] = kafkago.Message{Key: []byte(word), Value: fmt.Appendf(nil, "%s\t%d", word, totals[word])}
		}
		if err := w.WriteMessages(ctx, records...); err != nil {
			return fmt.Errorf("write totals to topic %q: %w", topic, err)
		}
	}
	return nil
}
