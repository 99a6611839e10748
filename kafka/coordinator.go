package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/sink"
)

// coordinated asks the coordinator of a kind for something, and tries again what
// passes: a coordinator that moved, is loading, or still ends the transaction
// before.
func (s *Sink) coordinated(ctx context.Context, kind int8, key, doing string, f func(*wire.Conn) error) error {
	r := s.cluster.retrier()
	for {
		err := s.coordinator(ctx, kind, key, f)
		if err == nil {
			return nil
		}
		if fenced(err) {
			s.shutOut()
			return fmt.Errorf("%v: %s: %w: %w", s, doing, sink.ErrFenced, err)
		}
		if ended(err) {
			err = &waiting{err}
		} else {
			s.forget(kind)
		}
		if !r.again(ctx, err) {
			return r.wrap(err, "%v: %s", s, doing)
		}
	}
}

// coordinator asks once.
func (s *Sink) coordinator(ctx context.Context, kind int8, key string, f func(*wire.Conn) error) error {
	s.mu.Lock()
	addr := s.addrs[kind]
	s.mu.Unlock()
	if addr == "" {
		var errs []error
		for _, a := range s.cluster.addresses() {
			err := s.cluster.with(ctx, a, func(c *wire.Conn) (err error) {
				addr, err = c.FindCoordinator(ctx, kind, key)
				return err
			})
			if err == nil {
				break
			}
			errs = append(errs, err)
			if ctx.Err() != nil {
				break
			}
		}
		if addr == "" {
			return &brokersError{errs}
		}
		s.mu.Lock()
		s.addrs[kind] = addr
		s.mu.Unlock()
	}
	return s.cluster.with(ctx, addr, f)
}

func (s *Sink) forget(kind int8) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.addrs, kind)
}

// waiting is an answer that passes by itself.
type waiting struct{ error }

func (w *waiting) Unwrap() error { return w.error }

// Permanent is for passing.
func (w *waiting) Permanent() bool { return false }

// ended says that the coordinator is still busy with a transaction.
func ended(err error) bool {
	return errors.Is(err, wire.ConcurrentTransactions) || errors.Is(err, wire.UnstableOffset)
}

// fenced says that the producer's hold is gone: by a newer one, by a timeout, or
// because what it wrote did not arrive in order.
func fenced(err error) bool {
	var code wire.Error
	if !errors.As(err, &code) {
		return false
	}
	switch code {
	case wire.InvalidProducerEpoch, wire.ProducerFenced, wire.InvalidProducerMapping, wire.InvalidTxnState,
		wire.UnknownProducerID, wire.OutOfOrderSequence, wire.DuplicateSequence, wire.TransactionAbortable:
		return true
	}
	return false
}
