package kafka

import (
	"context"
	"fmt"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/sink"
)

// A request whose answer did not come may still arrive (from the kernel after its
// connection was closed, from a proxy, in a broker that stood still), though it was asked
// again on another connection and was answered there. What it does then:
//
//	request              within its transaction       behind its end                      so
//	InitProducerId       ends the transaction and     the same                            nothing: the next request is refused
//	 (fence)             the run's hold                                                   before a commit can succeed, and the
//	                                                                                      engine fences again
//	InitProducerId       comes before Begin           ends what is open, or only repeats  nothing: as above
//	 (next epoch)                                     what it answered
//	AddPartitionsToTxn   nothing: it is in already    opens an empty transaction          next epoch
//	Produce              nothing: its sequence is     nothing: the leader has a later     nothing. If it was answered nowhere, its
//	                     known, the leader refuses    sequence, or a later epoch          sequence is in doubt: fence (lost), no
//	                                                                                      EndTxn, which would keep the epoch
//	AddOffsetsToTxn      nothing: it is in already    opens an empty transaction          next epoch
//	TxnOffsetCommit      writes the same memory once  brings an old memory into the next  next epoch, and one text for each
//	                     more                         transaction, over its own           transaction
//	EndTxn (commit)      commits: all else has been   commits what there is of the next   next epoch; once it was asked for, no
//	                     answered before it           one, without its memory             abort, but lost
//	EndTxn (abort)       aborts: nothing follows      aborts what there is of the next    next epoch
//	                                                  one, of which the rest is committed
//	InitProducerId       ends the transaction         ends what is open, or is refused    nothing: as above
//	 (abandon)
//
// A transaction's coordinator refuses what comes with an epoch that is over. So does that
// of the group, in brokers that ask the former. Those that do not (before KIP-890) learn of
// the epoch from what is written with it: an old memory that comes before the next one is
// replaced by it, one that comes behind it is refused, and one that no other follows keeps
// the group unstable until [Sink.settle].

// doubtful makes f note that its request was sent and not answered.
func (s *Sink) doubtful(f func(*wire.Conn) error) func(*wire.Conn) error {
	return func(c *wire.Conn) error {
		err := f(c)
		if err != nil && c.Broken() && !sabotage.On("kafka-late-request") {
			s.mu.Lock()
			s.doubt = true
			s.mu.Unlock()
		}
		return err
	}
}

// changes is coordinated for what is part of a transaction.
func (s *Sink) changes(ctx context.Context, kind int8, doing string, f func(*wire.Conn) error) error {
	return s.coordinated(ctx, kind, s.txn.ID, doing, s.doubtful(f))
}

// renew takes the next epoch if a request of the one before may still arrive. It does so
// only as the one who has the epoch before: whoever has fenced this run since then stays in
// charge, and this run has to ask who owns the root before it goes on.
func (s *Sink) renew(ctx context.Context) error {
	s.mu.Lock()
	doubt := s.doubt
	s.mu.Unlock()
	if !doubt {
		return nil
	}
	var next wire.ProducerID
	err := s.coordinated(ctx, wire.TransactionCoordinator, s.txn.ID, "take the next epoch", func(c *wire.Conn) (err error) {
		next, err = c.NextEpoch(ctx, s.txn, s.cfg.txnTimeout)
		return err
	})
	if err != nil {
		return err
	}
	// Not every server looks at who asks. If somebody else was in between, it shows here.
	if now := s.txn.ProducerID; next.ID != now.ID || next.Epoch != now.Epoch+1 {
		s.lost()
		return fmt.Errorf("%v: take the next epoch: %w: the producer was %v, it became %v", s, sink.ErrFenced, now, next)
	}
	s.txn.ProducerID = next
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt, s.sequence = false, map[wire.TopicPartition]int32{}
	return nil
}

// abandon ends a transaction of which a request may still arrive, by the next epoch: after
// it what arrives is refused, which an abort in this one would not see to. It asks once;
// what it cannot end the next fence ends, or the transaction's timeout. Nobody else's is
// touched: a newer producer of the transactional id has another epoch, or learns of it as
// of any fence.
func (s *Sink) abandon(ctx context.Context) error {
	if sabotage.On("kafka-abort-left-open") {
		return nil
	}
	err := s.coordinator(ctx, wire.TransactionCoordinator, s.txn.ID, func(c *wire.Conn) error {
		_, err := c.NextEpoch(ctx, s.txn, s.cfg.txnTimeout)
		return err
	})
	if err == nil || ended(err) || fenced(err) { // it is being aborted
		return nil
	}
	return fmt.Errorf("%v: abort: %w", s, err)
}

// settle ends what no transaction of the coordinator knows of: a memory that has arrived
// behind the end of its transaction, with which a group is unstable for ever.
func (s *Sink) settle(ctx context.Context) error {
	err := s.changes(ctx, wire.TransactionCoordinator, "settle the memory", func(c *wire.Conn) error {
		return c.AddOffsetsToTxn(ctx, s.txn, s.txn.ID)
	})
	if err != nil {
		return err
	}
	return s.changes(ctx, wire.TransactionCoordinator, "settle the memory", func(c *wire.Conn) error {
		return c.EndTxn(ctx, s.txn, false)
	})
}
