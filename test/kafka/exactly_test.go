package kafkatest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestExactlyOnceReadByKafkasConsole: a job whose function gives another text each time
// dies again and again among its requests to Kafka; in the end Kafka's own console
// consumer, of committed records only, reads each total once.
func TestExactlyOnceReadByKafkasConsole(t *testing.T) {
	onEach(t, func(r *rig) {
		const words, count = 20, 300
		in, out := r.topic(3), r.topic(2)
		want := map[string]bool{}
		var records []*kgo.Record
		for i := range count {
			records = append(records, value(int32(i%3), fmt.Sprint("w", i%words)))
			want[fmt.Sprintf("w%d=%d", i%words, i/words+1)] = true
		}
		r.produce(r.client(), in, records...)
		dir := r.TempDir()
		life := func(in1 *vfs.Faults) error {
			u := kafka.NewSink("out", kafka.Brokers(strings.Split(r.addr, ",")...), kafka.RetryFor(300*time.Millisecond),
				kafka.Dialer(&kafkago.Dialer{DialFunc: injectedDial(in1)}))
			return r.run(func(ssc *dstream.StreamingContext) error {
				ones := dstream.MapPair(r.stream(ssc, in), func(x kafka.Record) (string, int) { return string(x.Value), 1 })
				totals := dstream.MapWithState(ones, dstream.Function(
					func(word string, one dstream.Option[int], s *dstream.State[int]) string {
						s.Update(s.OrElse(0) + one.OrElse(0))
						return fmt.Sprintf("%s=%d %d", word, s.Get(), rand.Int64())
					}).Named("totals"))
				dstream.Output(totals, "totals", kafka.To(u, out, func(text string) (kafka.Message, error) {
					word, _, _ := strings.Cut(text, "=")
					return kafka.Message{Key: []byte(word), Value: []byte(text)}, nil
				}))
				return nil
			}, dstream.WithCheckpoint(dir), dstream.WithIORetry(0), dstream.WithMaxRecordsPerBatch(60))
		}
		deaths := 0
		for at := 8; ; at += 5 {
			faults := &vfs.Faults{}
			faults.Fail(vfs.Rule{K: at, After: at%2 == 0, Dead: true})
			if err := life(faults); err == nil {
				break
			}
			deaths++
		}
		require.Positive(r, deaths)
		r.Log(deaths, "deaths")
		require.NoError(r, r.settle(r.ctx))
		last := map[string]int{}
		lines := r.consoleOrOwn(out, count)
		require.Len(r, lines, count)
		for _, line := range lines {
			total, _, _ := strings.Cut(line, " ")
			require.True(r, want[total], "%q is there twice, or was never written", line)
			delete(want, total)
			word, text, _ := strings.Cut(total, "=")
			n, err := strconv.Atoi(text)
			require.NoError(r, err)
			require.Equal(r, last[word]+1, n, line)
			last[word] = n
		}
	})
}

// consoleOrOwn reads a topic's committed records with Kafka's console consumer, or,
// where there is none, with the source. It waits for one more than there should be.
func (r *rig) consoleOrOwn(topic string, count int) (lines []string) {
	tool := os.Getenv("STATEMILL_KAFKA_TOOL")
	if !r.real || tool == "" {
		for _, x := range r.read(topic) {
			lines = append(lines, x.Text())
		}
		return lines
	}
	cmd := exec.CommandContext(r.ctx, tool, "console-consumer", "--bootstrap-server", r.addr, "--topic", topic, "--from-beginning",
		"--isolation-level", "read_committed", "--max-messages", strconv.Itoa(count+1), "--timeout-ms", "8000")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run() // it fails for the one that never comes
	require.NoError(r, r.ctx.Err(), errs.String())
	if out.Len() == 0 {
		require.NoError(r, err, errs.String())
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "w") { // it tells of its time-out there too
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}
