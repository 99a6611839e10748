package kafka

import (
	"cmp"
	"context"
	"slices"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
)

// gate is a lock that is not waited for longer than a context lasts.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g gate) leave() { <-g }

// lane is the lock under which the batches of one partition follow one another.
func (p *Producer) lane(at wire.TopicPartition) gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[at]
	if l == nil {
		l = newGate()
		p.lanes[at] = l
	}
	return l
}

// identities is how many a batch may use up: each costs the knowledge of what became
// of the try before.
const identities = 3

// send sends the batches of partitions and waits until they are safe.
func (p *Producer) send(ctx context.Context, list ...*outgoing) error {
	// Everybody takes lanes in one order, so that nobody waits in a circle.
	slices.SortFunc(list, func(a, b *outgoing) int {
		return cmp.Or(cmp.Compare(a.at.Topic, b.at.Topic), cmp.Compare(a.at.Partition, b.at.Partition))
	})
	for _, o := range list {
		l := p.lane(o.at)
		if err := l.enter(ctx); err != nil {
			return err
		}
		defer l.leave()
	}
	for left := identities - 1; ; left-- {
		id, err := p.identity(ctx)
		if err != nil {
			return err
		}
		failed := p.sendAs(ctx, id, list)
		if failed == nil {
			return nil
		}
		p.giveUp(id) // they may be there, or come yet: the sequences are not known
		if !fenced(failed.o.err) || left == 0 || ctx.Err() != nil {
			return failed.wrap(p)
		}
	}
}

// sendAs sends those that are not safe yet.
func (p *Producer) sendAs(ctx context.Context, id *identity, list []*outgoing) *failure {
	var now []*outgoing
	id.mu.Lock()
	for _, o := range list {
		if o.to.b.Len() > 0 {
			o.first, o.asked = id.next[o.at], false
			now = append(now, o)
		}
	}
	id.mu.Unlock()
	d := &delivery{p.cluster, &p.cfg, "", id.ProducerID, p.countAnew} // by the next call
	return d.all(ctx, now, func(o *outgoing) {
		id.mu.Lock()
		if !sabotage.On("kafka-sequence-stands") {
			id.next[o.at] = nextSequence(o.first, o.to.b.Len())
		}
		id.mu.Unlock()
		o.to.b.Reset()
	})
}

// identity gives the one in use, or a new one.
func (p *Producer) identity(ctx context.Context) (*identity, error) {
	if err := p.asking.enter(ctx); err != nil {
		return nil, err
	}
	defer p.asking.leave()
	p.mu.Lock()
	id := p.id
	p.mu.Unlock()
	if id != nil {
		return id, nil
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
				id := &identity{ProducerID: got, next: map[wire.TopicPartition]int32{}}
				p.mu.Lock()
				p.id = id
				p.mu.Unlock()
				return id, nil
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
