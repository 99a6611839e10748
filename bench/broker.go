package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/statemill/statemill/kafka/embedded"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafkaPartitions is the number of partitions of every topic here but that of the backlog.
const kafkaPartitions = 4

// A layout is how a topic is cut: partitions, and the bytes of a record batch. The Java producer's default is 16 KiB.
type layout struct {
	partitions int
	batch      int32
}

// brokerEnv names a broker to use instead of the embedded one.
const brokerEnv = "STATEMILL_KAFKA"

// A topic is the input of a Kafka benchmark: lines spread evenly over the partitions, on a broker in another process.
type topic struct {
	Brokers, Name string // Brokers is a list with commas
	embedded      bool   // the broker
}

// serve is the broker's process: it tells its address and ends with its standard input, so it cannot outlive the command.
func serve(w io.Writer) error {
	b, err := embedded.Start()
	if err != nil {
		return err
	}
	defer b.Close()
	fmt.Fprintln(w, b.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startBroker runs the embedded broker in a process of its own: else its processor time would be counted.
func startBroker() (addr string, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, "-serve")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	if addr, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		return "", nil, fmt.Errorf("the broker told no address: %w", errors.Join(err, stop()))
	}
	return strings.TrimSpace(addr), stop, nil
}

// openTopic makes a topic with that input, and the broker if none is named.
func openTopic(to layout, fill func(emit func(lines) error) error) (t topic, done func() error, err error) {
	if to.partitions == 0 {
		to = layout{kafkaPartitions, 16 << 10}
	}
	t = topic{Brokers: os.Getenv(brokerEnv), Name: fmt.Sprintf("statemill-bench-%d", time.Now().UnixNano())}
	stop := func() error { return nil }
	if t.Brokers == "" {
		t.embedded = true
		if t.Brokers, stop, err = startBroker(); err != nil {
			return t, nil, err
		}
	}
	cl, err := t.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(to.batch), kgo.ProducerLinger(20*time.Millisecond), kgo.MaxBufferedRecords(100_000), kgo.MaxBufferedBytes(64<<20))
	if err != nil {
		return t, nil, errors.Join(err, stop())
	}
	if err = t.create(cl, to.partitions); err == nil {
		err = t.fill(cl, to.partitions, fill)
	}
	done = func() error {
		defer cl.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		q := kmsg.NewPtrDeleteTopicsRequest()
		q.TimeoutMillis = 5000
		q.TopicNames = []string{t.Name}
		x := kmsg.NewDeleteTopicsRequestTopic()
		x.Topic = &t.Name
		q.Topics = append(q.Topics, x)
		_, err := q.RequestWith(ctx, cl)
		return errors.Join(err, stop())
	}
	if err != nil {
		return t, nil, fmt.Errorf("fill topic %s at %s: %w", t.Name, t.Brokers, errors.Join(err, done()))
	}
	return t, done, nil
}

// broker says what the figures were measured with.
func (t topic) broker() string {
	if t.embedded {
		return "embedded"
	}
	return t.Brokers
}

func (t topic) seeds() []string { return strings.Split(t.Brokers, ",") }

func (t topic) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(opts, kgo.SeedBrokers(t.seeds()...))...)
}

func (t topic) create(cl *kgo.Client, partitions int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	q := kmsg.NewPtrCreateTopicsRequest()
	q.TimeoutMillis = 30_000
	x := kmsg.NewCreateTopicsRequestTopic()
	x.Topic, x.NumPartitions, x.ReplicationFactor = t.Name, int32(partitions), 1
	q.Topics = append(q.Topics, x)
	answer, err := q.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.Topics[0].ErrorCode)
}

// fill writes the lines to the partitions in turn.
func (t topic) fill(cl *kgo.Client, partitions int, fill func(emit func(lines) error) error) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), 2*time.Minute, errors.New("the broker takes too long"))
	defer cancel()
	failed := make(chan error, 1)
	at := 0
	err := fill(func(in lines) error {
		all := make([]kgo.Record, len(in))
		for i, line := range in {
			r := &all[i]
			r.Topic, r.Partition, r.Value = t.Name, int32(at%partitions), []byte(line)
			at++
			cl.Produce(ctx, r, func(_ *kgo.Record, err error) {
				if err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			})
		}
		return context.Cause(ctx)
	})
	if err := errors.Join(err, cl.Flush(ctx)); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
