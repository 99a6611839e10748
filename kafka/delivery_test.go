package kafka

import (
	"context"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/sink"
	"github.com/stretchr/testify/require"
)

// asked counts requests by their kind.
func (b *fakeBroker) asked() (counts map[int16]int) {
	counts = map[int16]int{}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = func(key int16, _ int) (int16, string) {
		counts[key]++
		return 0, ""
	}
	return counts
}

// partitionsOf makes a topic with so many partitions.
func partitionsOf(b *fakeBroker, topic string, partitions int32) {
	for p := range partitions {
		b.log(topic, p)
	}
}

// TestOneRequestForAllPartitions: what an epoch writes to many partitions takes as many
// round trips as to one, and so does a producer's call.
func TestOneRequestForAllPartitions(t *testing.T) {
	b, s := sinkOf(t)
	partitionsOf(b, "out", 64)
	s.Topic("in")
	partitionsOf(b, "in", 64)
	fence(t, s, "root")
	counts := b.asked()
	tx, err := s.Begin(t.Context(), 1)
	require.NoError(t, err)
	for i := range 64 {
		for _, topic := range []string{"out", "in"} {
			require.NoError(t, tx.Write(t.Context(), sink.Part{Target: topic, Index: i, Of: 64}, rowsOf(t, valued(fmt.Sprint(i))...)))
		}
	}
	require.NoError(t, tx.Commit(t.Context(), memory(1)))
	b.mu.Lock()
	require.Equal(t, map[int16]int{24: 1, 0: 1, 25: 1, 10: 1, 28: 1, 26: 1}, without18(counts))
	clear(counts)
	b.mu.Unlock()
	for i := range int32(64) {
		b.has(t, "out", i, fmt.Sprint("=", i))
		b.has(t, "in", i, fmt.Sprint("=", i))
	}

	p := NewProducer(Brokers(b.addr()))
	defer p.Close()
	var keyed []Message
	for i := range 200 {
		keyed = append(keyed, Message{Key: fmt.Append(nil, i), Value: []byte("v")})
	}
	require.NoError(t, p.Write(t.Context(), "in", keyed...))
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Equal(t, 1, counts[0])
}

// without18 leaves out what each connection asks first.
func without18(counts map[int16]int) map[int16]int {
	delete(counts, 18)
	return counts
}

// TestSequencesUnderPartialFailures: of the partitions of one request some fail, in ways
// that leave what was sent there or not; each row is there once and in order, which the
// broker's own look at sequences would not allow if one of them were wrong.
func TestSequencesUnderPartialFailures(t *testing.T) {
	for seed := range int64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel() // it waits between tries
			random := rand.New(rand.NewSource(seed))
			b, s := sinkOf(t, RetryFor(time.Minute), ProduceBatchBytes(1<<10))
			partitionsOf(b, "out", 5)
			partitionsOf(b, "in", 3)
			s.Topic("in")
			fence(t, s, "root")
			p := NewProducer(Brokers(b.addr()), RetryFor(time.Minute), ProduceBatchBytes(1<<10))
			t.Cleanup(func() { require.NoError(t, p.Close()) })
			failures, hits := 0, 0
			b.mu.Lock()
			b.writes.refuse = func(_ TopicPartition, stored bool) int16 {
				if failures == 0 || random.Intn(3) > 0 {
					return 0
				}
				failures--
				hits++
				if stored {
					return []int16{7, 20}[random.Intn(2)] // it is there, and the answer says that nobody knows
				}
				return []int16{2, 3, 5, 6, 19}[random.Intn(5)]
			}
			b.mu.Unlock()
			arm := func() {
				b.mu.Lock()
				failures = 6
				b.mu.Unlock()
			}
			want := map[TopicPartition][]string{}
			for epoch := uint64(1); epoch <= 4; epoch++ {
				arm()
				tx, err := s.Begin(t.Context(), epoch)
				require.NoError(t, err)
				for part := range 8 {
					tp := TopicPartition{"out", int32(part)}
					if part >= 5 {
						tp = TopicPartition{"in", int32(part - 5)}
					}
					var rows []Message
					for i := range random.Intn(12) { // more than a batch, or nothing
						v := fmt.Sprintf("%d.%d.%d.%0200d", epoch, part, i, 0)
						rows = append(rows, Message{Value: []byte(v)})
						want[tp] = append(want[tp], "="+v)
					}
					require.NoError(t, tx.Write(t.Context(), sink.Part{Target: tp.Topic, Index: int(tp.Partition)}, rowsOf(t, rows...)))
				}
				require.NoError(t, tx.Commit(t.Context(), memory(epoch)))
				if hits == 0 {
					continue
				}
				arm()
				var keyed []Message
				for i := range 10 {
					keyed = append(keyed, Message{Key: fmt.Append(nil, i), Value: fmt.Appendf(nil, "p%d.%0200d", epoch, 0)})
				}
				require.NoError(t, p.Write(t.Context(), "in", keyed...))
				w, err := p.begin(t.Context(), "in")
				require.NoError(t, err)
				for _, m := range keyed {
					tp := TopicPartition{"in", int32(w.place.Partition(string(m.Key)))}
					want[tp] = append(want[tp], string(m.Key)+"="+string(m.Value))
				}
			}
			require.Positive(t, hits)
			for tp, rows := range want {
				b.has(t, tp.Topic, tp.Partition, rows...)
			}
		})
	}
}

// TestDuplicateAtTheFirstTry: what the leader says to have, and nobody has sent before,
// is another batch of the same number: the hold is gone.
func TestDuplicateAtTheFirstTry(t *testing.T) {
	b, s := sinkOf(t)
	fence(t, s, "root")
	tx := begun(t, s, 1, "a")
	b.faults(0, int16(wire.DuplicateSequence), "", 1)
	err := tx.Commit(t.Context(), memory(1))
	require.ErrorIs(t, err, sink.ErrFenced)
	require.ErrorIs(t, err, wire.DuplicateSequence)
	fence(t, s, "root")
	require.NoError(t, begun(t, s, 1, "a").Commit(t.Context(), memory(1)))
	b.has(t, "out", 0, "=a")
}

// TestProducerHeedsContexts: who waits for another one to get an id, or for its turn at a
// partition, waits no longer than its context lasts.
func TestProducerHeedsContexts(t *testing.T) {
	for name, key := range map[string]int16{"id": 22, "turn": 0} {
		t.Run(name, func(t *testing.T) {
			b := newFake(t)
			b.log("out", 0)
			p := NewProducer(Brokers(b.addr()), RequestTimeout(time.Hour))
			defer p.Close()
			held := make(chan bool, 1)
			b.mu.Lock()
			b.fault = func(k int16, _ int) (int16, string) {
				if k == key {
					held <- true
					return 0, "silent"
				}
				return 0, ""
			}
			b.mu.Unlock()
			first, stop := context.WithCancel(t.Context())
			done := make(chan error, 2)
			go func() { done <- p.Write(first, "out", Message{Value: []byte("a")}) }()
			<-held
			second, cancel := context.WithCancel(t.Context())
			go func() { done <- p.Write(second, "out", Message{Value: []byte("b")}) }()
			cancel()
			require.ErrorIs(t, <-done, context.Canceled, "not an hour later")
			stop()
			require.ErrorIs(t, <-done, context.Canceled)
		})
	}
}
