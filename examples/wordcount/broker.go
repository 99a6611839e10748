package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

const (
	// A request carries at most so many records of one partition.
	requestLines = 2000
	// kafkaTimeout bounds a question to the brokers.
	kafkaTimeout = 8 * time.Second
)

// topicWriter writes records to a topic, with a connection pool of its own.
type topicWriter struct {
	*kafkago.Writer
	transport *kafkago.Transport
}

// writeTo makes a writer of requests of at most that many bytes. A request that
// fails is tried so many times in all.
func writeTo(brokers []string, topic string, balancer kafkago.Balancer, largest int64, attempts int) topicWriter {
	transport := &kafkago.Transport{}
	return topicWriter{transport: transport, Writer: &kafkago.Writer{
		Addr:         kafkago.TCP(brokers...),
		Topic:        topic,
		Balancer:     balancer,
		RequiredAcks: kafkago.RequireAll, // also makes it wait, and tell errors
		BatchSize:    requestLines,
		BatchBytes:   largest,
		BatchTimeout: 5 * time.Millisecond, // for the last ones, which do not fill a request
		MaxAttempts:  attempts,
		Transport:    transport,
	}}
}

func (w topicWriter) Close() error {
	defer w.transport.CloseIdleConnections()
	return w.Writer.Close()
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
	w := writeTo(brokers, topic, kafkago.Murmur2Balancer{Consistent: true}, 1<<20, 5) // where Java's producer puts a key
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
