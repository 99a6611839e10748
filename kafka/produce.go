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

// lane is the lock under which the batches of one partition follow one another.
func (p *Producer) lane(at wire.TopicPartition) *sync.Mutex {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[at]
	if l == nil {
		l = &sync.Mutex{}
		p.lanes[at] = l
	}
	return l
}

// identities is how many a batch may use up: each costs the knowledge of what became
// of the try before.
const identities = 3

// send sends a batch and waits until it is safe.
func (p *Producer) send(ctx context.Context, at wire.TopicPartition, to *produced) error {
	b := &to.b
	l := p.lane(at)
	l.Lock()
	defer l.Unlock()
	for left := identities - 1; ; left-- {
		id, err := p.identity(ctx)
		if err != nil {
			return err
		}
		id.mu.Lock()
		first := id.next[at]
		id.mu.Unlock()
		data, err := b.Append(nil, batch.Producer{ID: id.ID, Epoch: id.Epoch, Sequence: first}, p.cfg.codec)
		if err != nil {
			return &permanent{fmt.Errorf("%v: compress: %w", p, err)}
		}
		err = p.produce(ctx, at, to, data)
		if err == nil {
			id.mu.Lock()
			if !sabotage.On("kafka-sequence-stands") {
				id.next[at] = nextSequence(first, b.Len())
			}
			id.mu.Unlock()
			b.Reset()
			return nil
		}
		p.giveUp(id) // it may be there, or come yet: the sequence is not known
		if !fenced(err) || left == 0 || ctx.Err() != nil {
			return err
		}
	}
}

// produce sends the bytes of a batch until the leader has it.
func (p *Producer) produce(ctx context.Context, at wire.TopicPartition, to *produced, data []byte) error {
	r := p.cluster.retrier()
	for {
		err := errNoLeader
		if addr := p.cluster.leader(TopicPartition(at)); addr != "" {
			err = p.cluster.with(ctx, addr, func(c *wire.Conn) error {
				return c.Produce(ctx, "", at, data, p.cfg.requestTimeout)
			})
		}
		switch {
		case err == nil, errors.Is(err, wire.DuplicateSequence): // an earlier answer was lost
			return nil
		case errors.Is(err, wire.UnknownTopic):
			p.countAnew(at.Topic) // by the next call
		}
		if large := tooLargeFor(err, at, to, p.cfg.batchBytes); large != nil {
			err = large
		}
		if fenced(err) || !r.again(ctx, err) {
			return r.wrap(err, "%v: write %d bytes to %v", p, len(data), TopicPartition(at))
		}
		_, _ = p.cluster.about(ctx, []string{at.Topic}) // the leader may have moved
	}
}

// identity gives the one in use, or a new one.
func (p *Producer) identity(ctx context.Context) (*identity, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id != nil {
		return p.id, nil
	}
	r := p.cluster.retrier()
	for {
		var errs []error
		for _, addr := range p.cluster.addresses() {
			var got wire.ProducerID
			err := p.cluster.with(ctx, addr, func(c *wire.Conn) (err error) {
				got, err = c.InitProducerID(ctx, "", DefaultTransactionTimeout)
				return err
			})
			if err == nil {
				p.id = &identity{ProducerID: got, next: map[wire.TopicPartition]int32{}}
				return p.id, nil
			}
			errs = append(errs, err)
			if ctx.Err() != nil {
				break
			}
		}
		err := error(&brokersError{errs})
		if !r.again(ctx, err) {
			return nil, r.wrap(err, "%v: get an id", p)
		}
	}
}

func (p *Producer) countAnew(topic string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.counts, topic)
}

func (p *Producer) giveUp(id *identity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id == id {
		p.id = nil
	}
}
