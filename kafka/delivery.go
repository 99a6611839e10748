package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/batch"
	"github.com/statemill/statemill/kafka/internal/wire"
)

// outgoing is the batch of one partition on its way. Whoever sends it holds the lock of
// what it is made of: no other batch of the partition is on its way.
type outgoing struct {
	at    wire.TopicPartition
	to    *produced
	first int32 // sequence of the first record: the same until the leader has it
	// asked: some leader may have it. Only then is a duplicate the batch itself.
	asked, again bool
	err          error // of the last try
}

// delivery brings batches to their leaders.
type delivery struct {
	cluster *cluster
	cfg     *sinkConfig
	txn     string // "" for none
	id      wire.ProducerID
	unknown func(topic string) // is told of topics that a leader does not know
}

// requestBytes is how much goes into one request, unless a single batch is larger: so
// much is copied for each leader at a time.
const requestBytes = 1 << 20

// all sends batches again and again until their leaders have them, to all leaders at
// once. done is told of each; the others have errors, and the gravest is given back.
func (d *delivery) all(ctx context.Context, list []*outgoing, done func(*outgoing)) *failure {
	r := d.cluster.retrier()
	for {
		d.once(ctx, list)
		var left []*outgoing
		var worst *outgoing
		for _, o := range list {
			if o.err == nil || sabotage.On("kafka-partition-unheard") {
				done(o)
				continue
			}
			if errors.Is(o.err, wire.UnknownTopic) {
				d.unknown(o.at.Topic)
			}
			if large := tooLargeFor(o.err, o.at, o.to, d.cfg.batchBytes); large != nil {
				o.err = large
			}
			if left = append(left, o); worst == nil || grave(o.err) > grave(worst.err) {
				worst = o
			}
		}
		if worst == nil {
			return nil
		}
		list = left
		if fenced(worst.err) || !r.again(ctx, worst.err) {
			return &failure{r, worst, len(left)}
		}
		_, _ = d.cluster.about(ctx, topicsOfBatches(list)) // leaders may have moved
	}
}

// grave orders errors: what ends the producer's hold, what cannot pass, what may pass.
func grave(err error) int {
	switch {
	case fenced(err):
		return 2
	case !passing(err):
		return 1
	}
	return 0
}

func topicsOfBatches(list []*outgoing) (topics []string) {
	seen := map[string]bool{}
	for _, o := range list {
		if !seen[o.at.Topic] {
			seen[o.at.Topic] = true
			topics = append(topics, o.at.Topic)
		}
	}
	return topics
}

// failure is what all has given up.
type failure struct {
	r    *retrier
	o    *outgoing
	left int // batches, with this one
}

func (f *failure) wrap(who fmt.Stringer) error {
	more := ""
	if f.left > 1 {
		more = fmt.Sprintf(" (and batches to %d more partitions)", f.left-1)
	}
	return f.r.wrap(f.o.err, "%v: write %d bytes to %v%s", who, f.o.to.b.Size(), TopicPartition(f.o.at), more)
}

// once sends each batch once, and notes what became of it.
func (d *delivery) once(ctx context.Context, list []*outgoing) {
	by := map[string][]*outgoing{}
	for _, o := range list {
		o.err = errNoLeader
		if addr := d.cluster.leader(TopicPartition(o.at)); addr != "" {
			by[addr] = append(by[addr], o)
		}
	}
	var wait sync.WaitGroup
	for addr, list := range by {
		wait.Go(func() { d.lead(ctx, addr, list) })
	}
	wait.Wait()
}

// lead sends the batches of one leader, in as few requests as they fit into.
func (d *delivery) lead(ctx context.Context, addr string, list []*outgoing) {
	for len(list) > 0 {
		var part []*outgoing
		var batches []wire.Batch
		size := 0
		for len(list) > 0 && (size == 0 || size+list[0].to.b.Size() <= requestBytes) {
			o := list[0]
			list = list[1:]
			size += o.to.b.Size()
			p := batch.Producer{ID: d.id.ID, Epoch: d.id.Epoch, Sequence: o.first, Transactional: d.txn != ""}
			data, err := o.to.b.Append(nil, p, d.cfg.codec)
			if err != nil {
				o.err = &permanent{fmt.Errorf("compress: %w", err)}
				continue
			}
			part, batches = append(part, o), append(batches, wire.Batch{TopicPartition: o.at, Bytes: data})
		}
		if len(part) == 0 {
			continue
		}
		var faults []error
		err := d.cluster.with(ctx, addr, func(c *wire.Conn) (err error) {
			for _, o := range part {
				o.again, o.asked = o.asked, true
			}
			faults, err = c.Produce(ctx, d.txn, batches, d.cfg.requestTimeout)
			return err
		})
		if err != nil {
			for _, o := range append(part, list...) { // the others would only take as long
				o.err = err
			}
			return
		}
		for i, o := range part {
			o.err = o.verdict(faults[i])
		}
	}
}

// verdict is what a leader's answer means.
func (o *outgoing) verdict(err error) error {
	switch {
	case errors.Is(err, wire.DuplicateSequence) && (o.again || sabotage.On("kafka-duplicate-at-first")):
		return nil // an earlier answer was lost
	case errors.Is(err, wire.CorruptMessage):
		return &waiting{err} // on its way
	}
	return err
}

// nextSequence counts on; after the greatest number comes 0.
func nextSequence(first int32, n int) int32 {
	return int32((int64(first) + int64(n)) & (1<<31 - 1))
}
