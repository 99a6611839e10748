package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka/embedded"
	"github.com/statemill/statemill/vfs"
)

const (
	// The topic that the text is written to.
	textTopic      = "text"
	textPartitions = 4
	// Records that were written and do not come for so long are lost.
	lostAfter = 10 * time.Second
)

// counter runs the job and prints.
type counter struct {
	o      options
	stdout io.Writer
	meter  *meter
}

func newCounter(o options, stdout, stderr io.Writer) *counter {
	return &counter{o: o, stdout: stdout, meter: &meter{to: stderr, began: time.Now()}}
}

// run counts until ctx is cancelled or, if the source has an end, until then;
// prints the numbers, and gives the totals.
func (c *counter) run(ctx context.Context, from lines, more ...dstream.ContextOption) (map[string]int64, error) {
	r := &results{n: c.o.top, every: c.o.every, show: func(b dstream.Batch, top string) {
		fmt.Fprintf(c.stdout, "batch %d: top words: %s\n", b.Epoch, top)
	}}
	defer r.release()
	c.meter.began = time.Now()
	more = append(more,
		dstream.WithParallelism(c.o.workers),
		dstream.WithMaxRecordsPerBatch(c.o.batch),
		dstream.WithListener(dstream.Listener{BatchCompleted: c.meter.batch, Notice: c.notice}))
	if c.o.checkpoint != "" {
		c.whence(ctx)
		more = append(more, dstream.WithCheckpoint(c.o.checkpoint))
	}
	err := dstream.Run(ctx, c.o.interval, job(from, c.o.partitions, r), more...)
	took := time.Since(c.meter.began)
	if err != nil {
		return nil, err
	}
	totals, err := r.final(context.WithoutCancel(ctx)) // after an interrupt too
	if err != nil {
		return nil, err
	}
	c.meter.summary(c.stdout, took, totals, c.o.top)
	return totals, nil
}

// whence says whether the run is a new one or goes on, and from where. What is wrong
// with the checkpoint is left to the start of the run to tell.
func (c *counter) whence(ctx context.Context) {
	store, err := vfs.NewDir(vfs.Disk(), c.o.checkpoint, "reader")
	if err != nil {
		return
	}
	switch newest, err := checkpoint.OpenRoot(store).Newest(ctx); {
	case err != nil:
	case newest == nil:
		fmt.Fprintf(c.stdout, "checkpoint %s: a fresh start\n", c.o.checkpoint)
	default:
		fmt.Fprintf(c.stdout, "checkpoint %s: recovered from epoch %d, batch of %s\n", c.o.checkpoint, newest.Epoch,
			time.Unix(0, newest.Time).Format(time.DateTime))
	}
}

// notice tells what the checkpoint has to say, such as a bad snapshot.
func (c *counter) notice(n dstream.Notice) {
	text := n.Text
	if n.Kind == checkpoint.NoticeRetry && n.Err != nil {
		text += ": " + n.Err.Error()
	}
	fmt.Fprintf(c.meter.to, "        checkpoint: %s\n", text)
}

// countTopic counts a topic that others write, until ctx is cancelled.
func countTopic(ctx context.Context, o options, stdout, stderr io.Writer) error {
	if o.out != "" {
		if err := checkTopic(ctx, o.brokers, o.out); err != nil {
			return err
		}
	}
	fmt.Fprintf(stdout, "counting the words of topic %s at %s: %d partitions of state, a batch every %v, until Ctrl-C\n",
		o.topic, strings.Join(o.brokers, ","), o.partitions, o.interval)
	totals, err := newCounter(o, stdout, stderr).run(ctx, fromTopic(o.brokers, o.topic))
	if err != nil || o.out == "" {
		return err
	}
	if err := writeTotals(context.WithoutCancel(ctx), o.brokers, o.out, totals); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "written: %d totals to topic %s\n", len(totals), o.out)
	return nil
}

// countText counts a text and verifies the totals.
func countText(ctx context.Context, o options, t *text, stdout, stderr io.Writer) error {
	defer t.close()
	c := newCounter(o, stdout, stderr)
	over := c.overKafka
	if o.files {
		over = c.overFiles
	}
	totals, plain, err := over(ctx, t)
	if err != nil {
		return err
	}
	if err := verify(totals, plain); err != nil {
		return err
	}
	if o.checkpoint == "" && plain.words != c.meter.words {
		return fmt.Errorf("MISMATCH: the job counted %d words, the independent count %d", c.meter.words, plain.words)
	}
	fmt.Fprintf(stdout, "verified: %d keys exact\n", len(totals))
	return nil
}

// overFiles counts the text as it is.
func (c *counter) overFiles(ctx context.Context, t *text) (map[string]int64, *plainCount, error) {
	fmt.Fprintf(c.stdout, "counting the words of %s: %d partitions of state, at most %d lines a batch\n", t.what, c.o.partitions, c.o.batch)
	totals, err := c.run(ctx, fromSource(t.direct()), dstream.WithStopWhenDone())
	if err == nil {
		err = c.endedEarly(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	plain, err := c.again("text", t.plain)
	return totals, plain, err
}

// overKafka writes the text to a Kafka of its own and counts the topic, both at
// once. It ends when every written line has been counted.
func (c *counter) overKafka(ctx context.Context, t *text) (totals map[string]int64, plain *plainCount, err error) {
	kafka := []embedded.Option{embedded.BrokerConfig("message.max.bytes", strconv.Itoa(largestRequest))}
	attempts := 5
	if c.o.checkpoint != "" {
		k, err := openKeep(c.o.checkpoint, t)
		if err != nil {
			return nil, nil, err
		}
		defer k.close()
		kafka = append(kafka, embedded.DataDir(k.broker()), embedded.SyncWrites())
		attempts = 1 // a program that is started again writes exactly what is missing
	}
	broker, err := embedded.Start(append(kafka, embedded.Topic(textTopic, textPartitions))...)
	if err != nil {
		return nil, nil, err
	}
	defer broker.Close()
	have := make([]int64, textPartitions)
	if c.o.checkpoint != "" {
		if have, err = ends(ctx, broker.Addr(), textTopic, textPartitions); err != nil {
			return nil, nil, cmp.Or(c.endedEarly(ctx), err)
		}
	}
	fmt.Fprintf(c.stdout, "started a Kafka in this process at %s, topic %s with %d partitions\n", broker.Addrs(), textTopic, textPartitions)
	if n := sum(have); n > 0 {
		fmt.Fprintf(c.stdout, "its log has %d lines of earlier runs\n", n)
	}
	fmt.Fprintf(c.stdout, "writing %s to it, a record for each line, and counting the words of the topic:\n%d partitions of state, at most %d lines a batch\n",
		t.what, c.o.partitions, c.o.batch)

	totals, err = c.whileWriting(ctx, broker, func(ctx context.Context, addrs []string) *producer {
		return produce(ctx, addrs, textTopic, have, attempts, t)
	})
	if err != nil {
		return nil, nil, err
	}
	what, count := "text", t.plain
	if c.o.checkpoint != "" {
		what, count = "topic", func() (*plainCount, error) { return whole(ctx, broker.Addr(), t) }
	}
	plain, err = c.again(what, count)
	return totals, plain, err
}

// whileWriting counts the topic while a producer writes it.
func (c *counter) whileWriting(ctx context.Context, broker *embedded.Broker, produce func(context.Context, []string) *producer) (map[string]int64, error) {
	addrs := strings.Split(broker.Addrs(), ",")
	running, end := context.WithCancel(ctx)
	defer end()
	p := produce(running, addrs)
	c.meter.written = p.lines.Load
	c.meter.after = func() {
		lines, ok := p.finished()
		switch {
		case !ok:
		case p.err != nil, c.meter.position >= lines:
			end()
		case time.Since(p.ended) > lostAfter && time.Since(c.meter.newest) > lostAfter:
			end()
		}
	}
	totals, err := c.run(running, fromTopic(addrs, textTopic))
	end()
	written := p.wait()
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, c.endedEarly(ctx)
	case !written:
		return nil, errors.New("the text does not come to an end")
	case p.err != nil:
		return nil, p.err
	case p.lines.Load() != c.meter.position:
		return nil, fmt.Errorf("MISMATCH: %d lines were written, %d came back", p.lines.Load(), c.meter.position)
	}
	return totals, nil
}

// endedEarly is the error of an interrupt.
func (c *counter) endedEarly(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case c.o.checkpoint != "":
		return errors.New("ended early: nothing is verified; start it again to go on")
	default:
		return errors.New("ended early: nothing is verified")
	}
}

// again makes the independent count.
func (c *counter) again(what string, count func() (*plainCount, error)) (*plainCount, error) {
	fmt.Fprintf(c.meter.to, "        counting the %s again, in another way, to compare\n", what)
	plain, err := count()
	if err != nil {
		return nil, fmt.Errorf("the independent count: %w", err)
	}
	return plain, nil
}
