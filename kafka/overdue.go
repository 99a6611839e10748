package kafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/statemill/statemill/sink"
)

// overdueLimit is how many transactions in a row may last too long: the next one would too.
const overdueLimit = 3

// overdueError is a transaction that the broker has given up, or may have, because it
// lasted longer than TransactionTimeout.
type overdueError struct {
	s     *Sink
	epoch uint64
	open  time.Duration
	times int // in a row
	err   error
}

func (e *overdueError) Error() string {
	return fmt.Sprintf("%v: epoch %d: the transaction was open for %v, which is longer than TransactionTimeout (%v): raise TransactionTimeout (the broker allows transaction.max.timeout.ms, 15 min by default), or write less in a batch; this was transaction %d of %d in a row that may last too long: %v",
		e.s, e.epoch, e.open.Round(time.Millisecond), e.s.cfg.txnTimeout, e.times, overdueLimit, e.err)
}

// Unwrap gives the cause, but of the last one, which another fence would not mend.
func (e *overdueError) Unwrap() error {
	if e.Permanent() {
		return nil
	}
	return e.err
}

// Permanent: the next transaction would last as long.
func (e *overdueError) Permanent() bool { return e.times >= overdueLimit }

// explain says of a transaction that is gone if it took too long.
func (x *transaction) explain(err error) error {
	if !errors.Is(err, sink.ErrFenced) {
		return err
	}
	s := x.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.began.IsZero() {
		return err
	}
	open := s.cfg.clock.Now().Sub(x.began)
	if open < s.cfg.txnTimeout || x.generation != s.generation {
		return err
	}
	if !x.overdue { // once, of many that write at a time
		x.overdue = true
		s.overdue++
	}
	return &overdueError{s, x.epoch, open, s.overdue, err}
}
