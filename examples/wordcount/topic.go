package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// ends asks how many records each partition of a topic has; none was ever removed.
func ends(ctx context.Context, broker, topic string, partitions int) ([]int64, error) {
	out := make([]int64, partitions)
	for i := range out {
		err := withPartition(ctx, broker, topic, i, func(c *kafkago.Conn) (err error) {
			out[i], err = c.ReadLastOffset()
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// withPartition connects to a partition's leader.
func withPartition(ctx context.Context, broker, topic string, partition int, do func(*kafkago.Conn) error) error {
	c, err := kafkago.DialLeader(ctx, "tcp", broker, topic, partition)
	if err == nil {
		err = errors.Join(c.SetDeadline(time.Now().Add(kafkaTimeout)), do(c))
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		return fmt.Errorf("partition %d of topic %q at %s: %w", partition, topic, broker, err)
	}
	return nil
}

// plainTopic counts the words of a topic from its first record to the given ends. It
// reads with kafka-go's own consumer, which the job does not use: the library
// fetches and decodes in its own way.
func plainTopic(ctx context.Context, broker, topic string, ends []int64) (*plainCount, error) {
	p := newPlainCount()
	for i, end := range ends {
		err := withPartition(ctx, broker, topic, i, func(c *kafkago.Conn) error {
			if _, err := c.Seek(0, kafkago.SeekAbsolute); err != nil {
				return err
			}
			return readTo(c, end, p.line)
		})
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// readTo reads from where the connection stands to an offset.
func readTo(c *kafkago.Conn, end int64, each func(value []byte)) error {
	for next := int64(0); next < end; {
		from := next
		if err := c.SetDeadline(time.Now().Add(kafkaTimeout)); err != nil {
			return err
		}
		batch := c.ReadBatch(1, largestRequest)
		for next < end {
			m, err := batch.ReadMessage()
			if err != nil {
				break // the end of what this answer holds, or what Close tells
			}
			if m.Offset != next {
				return errors.Join(fmt.Errorf("offset %d follows %d", m.Offset, next-1), batch.Close())
			}
			next++
			each(m.Value)
		}
		if err := batch.Close(); err != nil {
			return err
		}
		if next == from {
			return fmt.Errorf("no record comes from offset %d, though the end is %d", next, end)
		}
	}
	return nil
}
