package kafkatest

import (
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// TestExactlyOnceReadByKafkasConsole: a job whose function gives another text each time
// dies again and again among its requests to Kafka; in the end Kafka's own console
// consumer, of committed records only, reads each total once.
func TestExactlyOnceReadByKafkasConsole(t *testing.T) {
	onEach(t, func(r *rig) {
		const count = 300
		in, out, dir := r.topic(3), r.topic(2), r.TempDir()
		want := r.words(in, 3, 20, count)
		deaths := 0
		for at := 8; ; at += 5 {
			faults := &vfs.Faults{}
			faults.Fail(vfs.Rule{K: at, After: at%2 == 0, Dead: true})
			err := r.exactly(exactJob{in: in, out: out, sink: []kafka.SinkOption{kafka.RetryFor(300 * time.Millisecond),
				kafka.Dialer(&kafkago.Dialer{DialFunc: injectedDial(faults)})}},
				dstream.WithCheckpoint(dir), dstream.WithIORetry(0), dstream.WithMaxRecordsPerBatch(60))
			if err == nil {
				break
			}
			deaths++
		}
		require.Positive(r, deaths)
		r.Log(deaths, "deaths")
		lines := r.consoleOrOther(out, count)
		require.Len(r, lines, count)
		r.requireTotals(want, lines)
	})
}
