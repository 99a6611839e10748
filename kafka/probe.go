package kafka

import (
	"context"
	"errors"

	"github.com/statemill/statemill/source"
)

var _ source.Prober = (*kafkaSource)(nil)

// Probe implements source.Prober: the topics are there, and what was read of them last
// is theirs. It connects, asks and lets go again.
func (s *kafkaSource) Probe(ctx context.Context, last *source.Plan) error {
	if err := s.Validate(); err != nil {
		return err
	}
	// What it notices on the way, Open will notice too.
	aside := &kafkaSource{cfg: s.cfg, counts: map[string]int64{}}
	k := newCluster(&aside.cfg)
	defer k.close()
	_, _, err := aside.locate(ctx, k, last)
	return err
}

// locate finds the partitions and puts them where the last plan ended. It takes no
// longer than a start may.
func (s *kafkaSource) locate(ctx context.Context, k *cluster, last *source.Plan) (f found, at resumed, err error) {
	limit := max(s.cfg.retryFor, s.cfg.requestTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, tooLong(limit))
	defer cancel()
	if f, err = s.find(ctx, k, last); err == nil {
		at, err = s.resume(f, last)
	}
	var e *Error
	if errors.As(err, &e) {
		e.final = context.Cause(ctx) != context.Canceled // it was tried for as long as a start may take
	}
	return f, at, err
}
