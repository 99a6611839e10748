package kafka

import (
	"context"
	"fmt"
	"slices"

	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
)

// span is what a partition has: [earliest, latest). timed is the offset of the start
// time, -1 if no record is as late. epoch is the leader's, -1 if it tells none. high is
// where the log really ends, behind open transactions; -1 if it was not asked for.
type span struct {
	earliest, latest, timed, high int64
	epoch                         int32
}

// end is where the log ends, as far as is known.
func (x *span) end() int64 { return max(x.latest, x.high) }

// spans looks at the log of each part. Earliest offsets are asked for only where
// they are needed. It fails at once if a topic is another one than before.
func (s *kafkaSource) spans(ctx context.Context, parts []*part, earliest func(*part) bool) ([]span, error) {
	r := s.cluster.retrier()
	for {
		out, err := s.spansOnce(ctx, parts, earliest)
		if err == nil {
			return out, nil
		}
		if !r.again(ctx, err) {
			return nil, r.wrap(err, "offsets of %v", &s.cfg.subscription)
		}
	}
}

func (s *kafkaSource) spansOnce(ctx context.Context, parts []*part, earliest func(*part) bool) ([]span, error) {
	s.asks(parts)
	if err := s.refresh(ctx, parts); err != nil {
		return nil, err
	}
	out := make([]span, len(parts))
	var some, timed []int
	all := make([]int, len(parts))
	for i, p := range parts {
		all[i], out[i].timed, out[i].high = i, -1, -1
		if earliest(p) {
			some = append(some, i)
		}
		if !p.placed && !p.late && s.cfg.at >= 0 {
			timed = append(timed, i)
		}
	}
	if err := s.ask(ctx, wire.Earliest, parts, some, func(i int, a wire.OffsetAnswer) { out[i].earliest = a.Offset }); err != nil {
		return nil, err
	}
	if err := s.ask(ctx, s.cfg.at, parts, timed, func(i int, a wire.OffsetAnswer) { out[i].timed = a.Offset }); err != nil {
		return nil, err
	}
	if err := s.ask(ctx, wire.Latest, parts, all, func(i int, a wire.OffsetAnswer) { out[i].latest, out[i].epoch = a.Offset, a.Epoch }); err != nil {
		return nil, err
	}
	return out, s.askHigh(ctx, parts, out)
}

// askHigh asks where logs really end of which the position lies behind the last stable
// offset: it may have been read to with ReadUncommitted, or be where a run is to start. Then
// it is a position like any other, and waits for its transaction.
func (s *kafkaSource) askHigh(ctx context.Context, parts []*part, spans []span) error {
	var behind []int
	s.mu.Lock()
	for i, p := range parts {
		at, known := p.next, p.placed
		if !known {
			at, known = s.named(p)
		}
		if known && at > spans[i].latest {
			behind = append(behind, i)
		}
	}
	s.mu.Unlock()
	if s.cfg.dirty || len(behind) == 0 || sabotage.On("behind-is-beyond") {
		return nil
	}
	return s.askAs(ctx, wire.Latest, false, parts, behind, func(i int, a wire.OffsetAnswer) { spans[i].high = a.Offset })
}

// refresh learns the leaders anew and checks the topics of parts.
func (s *kafkaSource) refresh(ctx context.Context, parts []*part) error {
	m, err := s.cluster.about(ctx, topicsOf(parts))
	if err != nil {
		return err
	}
	return s.areSame(m, parts)
}

// topicsOf names the topics of parts, each once.
func topicsOf(parts []*part) []string {
	names, has := []string{}, map[string]bool{}
	for _, p := range parts {
		if !has[p.Topic] {
			has[p.Topic] = true
			names = append(names, p.Topic)
		}
	}
	return names
}

// read says how far what is read was read.
func (s *kafkaSource) read() []source.Range {
	s.mu.Lock()
	defer s.mu.Unlock()
	var read []source.Range
	for _, p := range slices.Concat(s.parts, s.absent) {
		if p.placed {
			read = append(read, source.Range{Partition: p.name, Until: p.next})
		}
	}
	return read
}

// ask asks the leaders of parts[which...] for offsets, all of them at once. One that fails
// keeps no other from answering: those that wait are told apart by that.
func (s *kafkaSource) ask(ctx context.Context, what int64, parts []*part, which []int, set func(i int, a wire.OffsetAnswer)) error {
	return s.askAs(ctx, what, !s.cfg.dirty, parts, which, set)
}

// askAs is ask, for readers of committed records or of all.
func (s *kafkaSource) askAs(ctx context.Context, what int64, committed bool, parts []*part, which []int, set func(i int, a wire.OffsetAnswer)) error {
	byLeader := map[string][]int{}
	var none error
	for _, i := range which {
		addr := s.cluster.leader(parts[i].TopicPartition)
		if addr == "" {
			none = fmt.Errorf("%s: %w", parts[i].name, errNoLeader)
			continue
		}
		byLeader[addr] = append(byLeader[addr], i)
	}
	addrs := sortedKeys(byLeader)
	errs := make([]error, len(addrs))
	err := pool.Run(ctx, len(addrs), len(addrs), func(ctx context.Context, _, k int) error {
		errs[k] = s.askBroker(ctx, addrs[k], what, committed, parts, byLeader[addrs[k]], func(i int, a wire.OffsetAnswer) {
			set(i, a)
			s.answered(parts[i])
		})
		return nil
	})
	return firstOf(append(append([]error{err}, errs...), none))
}

// firstOf is the first error that is one.
func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// askBroker asks one broker for offsets of partitions that it leads, as readers of
// committed records see them or as they are.
func (s *kafkaSource) askBroker(ctx context.Context, addr string, what int64, committed bool, parts []*part, list []int, set func(i int, a wire.OffsetAnswer)) error {
	question := make([]wire.TopicPartition, len(list))
	index := map[wire.TopicPartition]int{}
	for k, i := range list {
		question[k] = wire.TopicPartition(parts[i].TopicPartition)
		index[question[k]] = i
	}
	var answers []wire.OffsetAnswer
	if err := s.cluster.with(ctx, addr, func(c *wire.Conn) (err error) {
		answers, err = c.ListOffsets(ctx, what, committed, question)
		return err
	}); err != nil {
		return err
	}
	var failed error
	for _, a := range answers {
		i, ok := index[a.TopicPartition]
		if !ok {
			continue
		}
		if a.Err != nil && failed == nil {
			failed = fmt.Errorf("%s at broker %s: %w", parts[i].name, addr, a.Err)
		}
		delete(index, a.TopicPartition)
		if a.Err == nil {
			set(i, a)
		}
	}
	if failed != nil {
		return failed
	}
	for tp := range index {
		return fmt.Errorf("broker %s told no offset of %s-%d", addr, tp.Topic, tp.Partition)
	}
	return nil
}
