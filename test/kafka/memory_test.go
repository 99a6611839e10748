package kafkatest

import (
	"bytes"
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/partitioner"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// report 29: a backlog many times the budget, of 100 KiB records in 8 partitions,
// every record kept in a shuffle for the length of its batch: the peak of the heap stays below
// twice the budget. A batch gets half of it: the engine may hold the one before too.
func TestMemoryBudget(t *testing.T) {
	r := realRig(t)
	const partitions, size, budget = 8, 100 << 10, 64 << 20
	count := 4 * budget / size
	topic := r.topic(partitions)
	cl := r.client(kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(100))
	v := bytes.Repeat([]byte("statemill "), size/10)
	for i := 0; i < count; i += 50 {
		var records []*kgo.Record
		for j := range min(50, count-i) {
			records = append(records, &kgo.Record{Partition: int32((i + j) % partitions), Value: v})
		}
		r.produce(cl, topic, records...)
	}
	cl.Close()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // the peak of what is live, not of garbage
	peak, done, ended := uint64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			case <-done:
				return
			}
		}
	}()
	var read, most int64
	err := r.run(func(ssc *dstream.StreamingContext) error {
		byKey := dstream.KeyBy(r.stream(ssc, topic, kafka.MaxBatchBytes(budget/2)), func(x kafka.Record) int64 { return x.Offset })
		dstream.Foreach(dstream.PartitionBy(byKey, partitioner.Hash[int64](4)), func(_ context.Context, _ dstream.Batch, x dstream.Pair[int64, kafka.Record]) error {
			read += int64(len(x.Value.Value))
			return nil
		})
		return nil
	}, dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) { most = max(most, p.InputRows) }}))
	close(done)
	<-ended
	require.NoError(r, err)
	require.EqualValues(r, count*len(v), read)
	used := int64(peak) - int64(before)
	r.Logf("budget %d MiB, backlog %d MiB, largest batch %d MiB, peak %d MiB", budget>>20, count*size>>20, most*size>>20, used>>20)
	require.LessOrEqual(r, most*size, int64(budget/2))
	require.LessOrEqual(r, used, int64(2*budget))
}
