package tools

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
)

// shape is what a user sees of a record, without place and time.
type shape struct {
	Key, Value []byte
	Headers    []kafka.Header
}

// TestConsoleProducerShapes: null, empty, text and headers come through apart.
func TestConsoleProducerShapes(t *testing.T) { // report 32
	lines := []string{
		"h1:one,h2:,h1:two\tk\tv",
		"NULL\tk\tNULL", // a tombstone
		"NULL\tk\t",
		"NULL\tNULL\tv",
		"NULL\t\tv",
		"NULL\tключ\tтекст",
	}
	want := []shape{
		{[]byte("k"), []byte("v"), []kafka.Header{{Key: "h1", Value: []byte("one")}, {Key: "h2", Value: []byte{}}, {Key: "h1", Value: []byte("two")}}},
		{[]byte("k"), nil, nil},
		{[]byte("k"), []byte{}, nil},
		{nil, []byte("v"), nil},
		{[]byte{}, []byte("v"), nil},
		{[]byte("ключ"), []byte("текст"), nil},
	}
	k := onKafka(t)
	for _, codec := range []string{"none", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			k := &kafkaTools{t: t, bootstrap: k.bootstrap, script: k.script}
			topic := k.topic(1)
			began := time.Now().Add(-time.Minute)
			k.produce(topic, codec, lines, "--reader-property", "parse.headers=true", "--reader-property", "null.marker=NULL")

			var got []shape
			var offsets []int64
			ctx, cancel := context.WithTimeout(t.Context(), runTime)
			defer cancel()
			err := dstream.Run(ctx, 20*time.Millisecond, func(ssc *dstream.StreamingContext) error {
				in := kafka.DirectStream(ssc, "in", kafka.Brokers(k.brokers()...), kafka.Topics(topic), kafka.FromEarliest(), kafka.StopAtEnd())
				dstream.Foreach(in, func(_ context.Context, _ dstream.Batch, r kafka.Record) error {
					got = append(got, shape{r.Key, r.Value, r.Headers})
					offsets = append(offsets, r.Offset)
					assert.Equal(t, topic, r.Topic)
					assert.Equal(t, r.Value == nil, r.Tombstone())
					assert.WithinRange(t, r.Time, began, time.Now().Add(time.Minute))
					return nil
				})
				return nil
			}, dstream.WithStopWhenDone())
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.Equal(t, []int64{0, 1, 2, 3, 4, 5}, offsets)
		})
	}
}

// checkCodecs looks into the broker's files: the topic must have record batches of
// all five codecs, else the test would prove less than it says.
func (k *kafkaTools) checkCodecs(topic string) {
	k.t.Helper()
	dir := os.Getenv("STATEMILL_KAFKA_DIR")
	if dir == "" {
		k.t.Log("STATEMILL_KAFKA_DIR is not set: the codecs on the broker's disk are not looked at")
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "node*", "data", topic+"-*", "*.log"))
	require.NoError(k.t, err)
	seen := map[uint16]bool{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(k.t, err)
		for len(data) > 23 {
			size := 12 + int(binary.BigEndian.Uint32(data[8:]))
			require.LessOrEqual(k.t, size, len(data), f)
			seen[binary.BigEndian.Uint16(data[21:])&7] = true
			data = data[size:]
		}
	}
	assert.Equal(k.t, map[uint16]bool{0: true, 1: true, 2: true, 3: true, 4: true}, seen, "codecs in %v", files)
}
