package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/kafka/embedded"
	"github.com/statemill/statemill/vfs"
)

// fileOf makes a text of one file.
func fileOf(t testing.TB, lines ...string) *text {
	name := filepath.Join(t.TempDir(), "text.txt")
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o644))
	return fileText([]string{name}, name)
}

// values reads every partition of a topic.
func values(t require.TestingT, broker, topic string, partitions int) [][]string {
	to, err := ends(context.Background(), broker, topic, partitions)
	require.NoError(t, err)
	out := make([][]string, partitions)
	for i, end := range to {
		err := withPartition(context.Background(), broker, topic, i, func(c *kafkago.Conn) error {
			_, err := c.Seek(0, kafkago.SeekAbsolute)
			require.NoError(t, err)
			return readTo(c, end, func(v []byte) { out[i] = append(out[i], string(v)) })
		})
		require.NoError(t, err)
	}
	return out
}

// A producer that goes on from any ends, as a kill between the requests of several
// partitions leaves them, writes the lines that are missing, and these only.
func TestProducerGoesOn(t *testing.T) {
	var lines []string
	for i := range 500 {
		lines = append(lines, strings.Repeat("x", i%7)+" "+time.Duration(i).String())
	}
	in := fileOf(t, lines...)
	broker, err := embedded.Start()
	require.NoError(t, err)
	defer broker.Close()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		partitions := rapid.IntRange(1, 4).Draw(t, "partitions")
		n++
		topic := "t" + time.Duration(n).String()
		require.NoError(t, create(broker, topic, partitions))
		want := make([][]string, partitions)
		for i, line := range lines {
			want[i%partitions] = append(want[i%partitions], line)
		}
		w := writeTo([]string{broker.Addr()}, topic, kafkago.BalancerFunc(inPlace), largestRequest, 1)
		for p := range want {
			var first []kafkago.Message
			for _, v := range want[p][:rapid.IntRange(0, len(want[p])).Draw(t, "have")] {
				first = append(first, kafkago.Message{Value: []byte(v), WriterData: p})
			}
			require.NoError(t, w.WriteMessages(context.Background(), first...))
		}
		require.NoError(t, w.Close())
		have, err := ends(context.Background(), broker.Addr(), topic, partitions)
		require.NoError(t, err)
		p := produce(context.Background(), []string{broker.Addr()}, topic, have, 1, in)
		<-p.done
		require.NoError(t, p.err)
		require.EqualValues(t, len(lines), p.lines.Load())
		require.Equal(t, want, values(t, broker.Addr(), topic, partitions))
	})
}

func create(b *embedded.Broker, topic string, partitions int) error {
	c, err := kafkago.Dial("tcp", b.Addr())
	if err != nil {
		return err
	}
	return errors.Join(c.CreateTopics(kafkago.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}), c.Close())
}

// The log is of one text, and for one program at a time.
func TestKeepIsOfOneTextAndProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wc")
	in := fileOf(t, "a", "b")
	k, err := openKeep(dir, in)
	require.NoError(t, err)
	assert.Equal(t, dir+".kafka", k.dir)
	_, err = openKeep(dir, in)
	require.ErrorIs(t, err, vfs.ErrLocked)
	assert.ErrorContains(t, err, "process ")
	require.NoError(t, k.close())
	k, err = openKeep(dir+"/", in)
	require.NoError(t, err, "the same folder")
	require.NoError(t, k.close())

	other := fileOf(t, "a", "c")
	_, err = openKeep(dir, other)
	require.ErrorContains(t, err, "another one now")
	assert.ErrorContains(t, err, in.what)
	k, err = openKeep(dir, in)
	require.NoError(t, err, "a refused one holds no lock")
	require.NoError(t, k.close())

	stdin := readerText(strings.NewReader("a"))
	defer stdin.close()
	_, err = openKeep(dir, stdin)
	require.ErrorContains(t, err, "the standard input cannot")
}

// The topic is held against the text, so that a producer's fault is no "verified".
func TestTopicIsHeldAgainstTheText(t *testing.T) {
	broker, err := embedded.Start(embedded.Topic(textTopic, textPartitions))
	require.NoError(t, err)
	defer broker.Close()
	in := fileOf(t, "to be or", "not to be")
	put(t, broker, textTopic, []byte("not to be"), []byte("to be or"))
	plain, err := whole(t.Context(), broker.Addr(), in)
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"to": 2, "be": 2, "or": 1, "not": 1}, plain.totals())
	put(t, broker, textTopic, []byte("or"))
	_, err = whole(t.Context(), broker.Addr(), in)
	assert.ErrorContains(t, err, `the topic is not the text: MISMATCH: 1 keys differ`)
}

// A broken reader of a text ends the producer with its error.
func TestProducerTellsTheReadersError(t *testing.T) {
	broker, err := embedded.Start(embedded.Topic("t", 1))
	require.NoError(t, err)
	defer broker.Close()
	in := &text{each: func(func(io.Reader) error) error { return os.ErrClosed }}
	p := produce(t.Context(), []string{broker.Addr()}, "t", []int64{0}, 1, in)
	require.True(t, p.wait())
	require.ErrorIs(t, p.err, os.ErrClosed)
}
