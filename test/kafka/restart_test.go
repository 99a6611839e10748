package kafkatest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// restartAfter is when TestBrokerRestart starts the broker again. Its start takes some
// seconds more, so that it is away for about 20.
const restartAfter = 16 * time.Second

// report 28: the broker is killed in mid-batch and comes back after about 20 s: both jobs that
// read it go on, each with every record counted once.
func TestBrokerRestart(t *testing.T) {
	r := realRig(t)
	dir := os.Getenv("STATEMILL_KAFKA_DIR")
	if dir == "" {
		t.Skip("needs the broker's folder: STATEMILL_KAFKA_DIR is not set (make test-kafka sets it)")
	}
	const partitions, count = 4, 20_000
	topic := r.topic(partitions)
	var records []*kgo.Record
	want := 0
	for i := range count {
		records = append(records, value(int32(i%partitions), fmt.Sprint(i)))
		want += i
	}
	r.produce(r.client(kgo.ProducerBatchCompression(kgo.NoCompression())), topic, records...)

	script := func(name string) error {
		cmd := exec.CommandContext(r.ctx, "broker/"+name, dir)
		cmd.Env = append(os.Environ(), "KAFKA_SIGNAL=KILL")
		return cmd.Run()
	}
	var seen atomic.Int64
	down, up := sync.OnceValue(func() error { return script("stop.sh") }), make(chan error, 1)
	count1 := func(x kafka.Record) (string, int, error) {
		if seen.Add(1) == count/2 {
			if err := down(); err != nil {
				return "", 0, err
			}
			time.AfterFunc(restartAfter, func() { up <- script("start.sh") })
		}
		n, err := strconv.Atoi(x.Text())
		return "sum", n, err
	}
	var jobs sync.WaitGroup
	var errs [2]error
	var sums [2]*outputs[int]
	for i := range 2 {
		jobs.Go(func() {
			errs[i] = r.run(func(ssc *dstream.StreamingContext) error {
				numbers := dstream.MapPairErr(r.stream(ssc, topic, kafka.FetchMaxBytes(4<<10)), count1)
				sums[i] = collect(dstream.MapWithState(numbers, dstream.Function(
					func(_ string, n dstream.Option[int], state *dstream.State[int]) int {
						state.Update(state.OrElse(0) + n.OrElse(0))
						return state.OrElse(0)
					}).Named("sums")))
				return nil
			}, dstream.WithMaxRecordsPerBatch(4000), dstream.WithIORetry(time.Minute)) // its start may take as long as it likes
		})
	}
	jobs.Wait()
	require.NoError(r, errs[0])
	require.NoError(r, errs[1])
	require.NoError(r, <-up)
	for _, out := range sums {
		require.Len(r, out.all, count)
		require.Equal(r, want, out.all[count-1])
	}
}

// reports 20 and 21: records that retention removed are told, not skipped, and a range
// that begins at what is left is read to its end.
func TestRetention(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		cl := r.client(kgo.ProducerBatchCompression(kgo.NoCompression()))
		for i := range 100 {
			r.produce(cl, topic, value(0, fmt.Sprint(i)))
		}
		r.expire(topic, 60)
		got := texts(r.read(topic))
		require.Len(r, got, 40)
		require.Equal(r, "0@60=60", got[0])
		err := r.run(func(ssc *dstream.StreamingContext) error {
			collect(r.stream(ssc, topic, kafka.FromOffsets(map[kafka.TopicPartition]int64{{Topic: topic}: 10})))
			return nil
		})
		var gone *kafka.OffsetRangeError
		require.ErrorAs(r, err, &gone)
		require.Equal(r, kafka.OffsetRangeError{Topic: topic, Wanted: 10, Earliest: 60, Latest: 100}, *gone)
		require.EqualValues(r, 50, gone.Lost())

		r.expire(topic, 100) // nothing is left
		require.Empty(r, r.read(topic))
	})
}
