package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
)

// lastMirror is how long Close waits for the last offsets.
const lastMirror = 500 * time.Millisecond

// mirrorEvery is how often all offsets are written again. Kafka forgets each offset of a
// group without members offsets.retention.minutes after it was written (7 days by
// default), also those of partitions that stand still.
const mirrorEvery = time.Hour

// mirror writes committed positions to a consumer group, beside the batches.
type mirror struct {
	s      *kafkaSource
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // holds one
	ending chan struct{}
	ended  chan struct{}

	mu   sync.Mutex
	want map[TopicPartition]spot
	mark string // the metadata of this job's offsets

	// Of its goroutine.
	have        map[TopicPartition]spot // what the group has
	tried       map[TopicPartition]spot // what was written last, perhaps
	read        bool                    // have was read before
	due         bool                    // all is to be written again
	shared      bool                    // somebody else writes too, and that was told
	met         bool                    // offsets of another root were met, and that was told
	coordinator string
	failing     bool
}

// spot is a position in one topic's history.
type spot struct {
	offset int64
	id     string // of the topic
}

func newMirror(s *kafkaSource) *mirror {
	m := &mirror{s: s, mark: markOfRoot(s.root), wake: make(chan struct{}, 1), ending: make(chan struct{}), ended: make(chan struct{}),
		want: map[TopicPartition]spot{}, have: map[TopicPartition]spot{}, tried: map[TopicPartition]spot{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	go m.run()
	return m
}

// committed takes the ends of a plan whose epoch is durable.
func (m *mirror) committed(plan source.Plan) {
	m.mu.Lock()
	for _, r := range plan.Ranges {
		m.want[partitionOf(r.Partition)] = spot{r.Until, r.Epoch}
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default: // it will see them
	}
}

// mirrorable is a plan without the ranges that a group must not have: those of topics that
// do not exist, and what an earlier run has planned of a topic that was made again since,
// which may be ahead of all that the new one has. mu is held.
func (s *kafkaSource) mirrorable(plan source.Plan) source.Plan {
	there := make(map[*part]bool, len(s.parts))
	for _, p := range s.parts {
		there[p] = true
	}
	plan.Ranges = slices.DeleteFunc(slices.Clone(plan.Ranges), func(r source.Range) bool {
		p := s.byName[r.Partition]
		return !there[p] || (!p.is(r.Epoch) || r.Until > p.next) && !sabotage.On("mirror-of-another-topic")
	})
	return plan
}

// close brings what is still to be brought, within a bound.
func (m *mirror) close() {
	timer := m.s.cfg.clock.NewTimer(lastMirror)
	defer timer.Stop()
	close(m.ending)
	select {
	case <-m.ended:
	case <-timer.C():
	}
	m.cancel()
	<-m.ended
}

func (m *mirror) run() {
	defer close(m.ended)
	again := m.s.cfg.clock.NewTimer(mirrorEvery)
	defer func() { again.Stop() }()
	for {
		select {
		case <-m.wake:
			m.told(m.bring(m.ctx))
			continue
		default:
		}
		select {
		case <-m.wake:
			m.told(m.bring(m.ctx))
		case <-again.C():
			again = m.s.cfg.clock.NewTimer(mirrorEvery)
			m.due = true
			m.told(m.bring(m.ctx))
		case <-m.ending:
			m.told(m.bring(m.ctx)) // what failed before, or came just now
			return
		}
	}
}

// told counts a failure, and tells the first of a row.
func (m *mirror) told(err error) {
	s := m.s
	switch {
	case err != nil:
		s.count("mirror_failed", 1)
		if !m.failing {
			s.notice("offsets could not be mirrored to group %q: %v", s.cfg.group, err)
		}
	case m.failing:
		s.notice("offsets are mirrored to group %q again", s.cfg.group)
	}
	m.failing = err != nil
}

// bring writes what the group does not have yet. Within one topic offsets never go back,
// whoever has written them.
func (m *mirror) bring(ctx context.Context) error {
	if m.read && len(m.lacks()) == 0 {
		return nil
	}
	if !m.read || !sabotage.On("mirror-read-once") {
		if err := m.learn(ctx); err != nil {
			return err
		}
	}
	took := m.lacks()
	if len(took) == 0 {
		return nil
	}
	maps.Copy(m.tried, took)
	err := m.coordinated(ctx, "commit", func(c *wire.Conn) error { return m.commit(ctx, c, took) })
	if errors.Is(err, wire.UnknownMember) || errors.Is(err, wire.IllegalGeneration) {
		err = fmt.Errorf("%w: the group has members: give the job a group of its own", err)
	}
	if err == nil {
		m.due = false
	}
	return err
}

// commit writes offsets and takes those out of left that need no other try. One partition
// that is refused keeps no other from being written, and one of a topic that does not
// exist is given up: if it is there again, the next plan has it.
func (m *mirror) commit(ctx context.Context, c *wire.Conn, left map[TopicPartition]spot) error {
	var out []wire.GroupOffset
	for tp, x := range left {
		out = append(out, wire.GroupOffset{TopicPartition: wire.TopicPartition(tp), Offset: x.offset, Metadata: m.mark})
	}
	slices.SortFunc(out, func(a, b wire.GroupOffset) int {
		return (&subscription{}).order(TopicPartition(a.TopicPartition), TopicPartition(b.TopicPartition))
	})
	err := c.OffsetCommit(ctx, m.s.cfg.group, out)
	var some *wire.RefusedError
	if err != nil && (!errors.As(err, &some) || sabotage.On("mirror-all-or-none")) {
		return err
	}
	err = nil
	for _, o := range out {
		tp := TopicPartition(o.TopicPartition)
		code := wire.Error(0)
		if some != nil {
			code = some.Codes[o.TopicPartition]
		}
		switch code {
		case 0:
			m.have[tp] = left[tp]
			m.s.count("mirrored", 1)
		case wire.UnknownTopic:
			m.forget(tp, left[tp])
		default:
			err = fmt.Errorf("topic %q partition %d: %w", tp.Topic, tp.Partition, code)
			continue
		}
		delete(left, tp)
	}
	return err
}

// forget gives an offset up, unless there is a newer one.
func (m *mirror) forget(tp TopicPartition, x spot) {
	delete(m.have, tp)
	delete(m.tried, tp)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.want[tp] == x {
		delete(m.want, tp)
	}
}

// lacks is what the group does not have yet, as far as is known; with due, what it has of
// this job's as well.
func (m *mirror) lacks() map[TopicPartition]spot {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[TopicPartition]spot{}
	for tp, x := range m.want {
		had, ok := m.have[tp]
		again := m.due && x.offset == had.offset
		if ok && x.offset <= had.offset && !again && (had.id == "" || had.id == x.id) && !sabotage.On("mirror-goes-back") {
			continue
		}
		out[tp] = x
	}
	return out
}

// learn reads what the group has. Others may write to it, though they should not.
func (m *mirror) learn(ctx context.Context) error {
	var offsets []wire.GroupOffset
	err := m.coordinated(ctx, "read", func(c *wire.Conn) (err error) {
		offsets, err = c.StableOffsets(ctx, m.s.cfg.group, nil)
		return err
	})
	if err != nil && !errors.Is(err, wire.GroupNotFound) {
		return err
	}
	there := map[TopicPartition]bool{}
	for _, o := range offsets {
		tp := TopicPartition(o.TopicPartition)
		there[tp] = o.Offset >= 0
		m.whose(tp, o)
		had, known := m.have[tp]
		switch tried, ours := m.tried[tp]; {
		case o.Offset < 0, known && had.offset == o.Offset:
		case ours && tried.offset == o.Offset: // the answer was lost
			m.have[tp] = tried
		case m.read:
			m.have[tp] = spot{offset: o.Offset}
			if ours && !m.shared {
				m.shared = true
				m.s.notice("somebody else writes to group %q: the offset of %v was %d and is %d: give each job a group of its own", m.s.cfg.group, tp, tried.offset, o.Offset)
			}
		default:
			m.have[tp] = spot{offset: o.Offset}
			m.mu.Lock()
			x, ok := m.want[tp]
			m.mu.Unlock()
			if ok && x.offset < o.Offset {
				m.s.notice("group %q has offset %d of %v, the job is at %d: the group's stays until the job has passed it", m.s.cfg.group, o.Offset, tp, x.offset)
			}
		}
	}
	maps.DeleteFunc(m.have, func(tp TopicPartition, _ spot) bool {
		return !there[tp] && !sabotage.On("mirror-never-expires") // it has expired
	})
	m.read = true
	return nil
}

// rootMark begins the metadata of mirrored offsets; the root's id follows.
const rootMark = "statemill root "

func markOfRoot(id string) string {
	if id == "" {
		return ""
	}
	return rootMark + id
}

// whose looks at who has written an offset: a job on another checkpoint, which may have
// ended long ago, or run beside this one.
func (m *mirror) whose(tp TopicPartition, o wire.GroupOffset) {
	root, marked := strings.CutPrefix(o.Metadata, rootMark)
	if o.Offset < 0 || !marked || m.mark == "" || o.Metadata == m.mark || m.met || sabotage.On("mirror-of-any-root") {
		return
	}
	m.met = true
	m.s.notice("group %q has offset %d of %v from a job on another checkpoint, root %s; this one is root %s: if both run, give each job a group of its own",
		m.s.cfg.group, o.Offset, tp, root, strings.TrimPrefix(m.mark, rootMark))
}

// coordinated asks the group's coordinator, and tries again what passes.
func (m *mirror) coordinated(ctx context.Context, doing string, f func(*wire.Conn) error) error {
	k := m.s.cluster
	r := k.retrier()
	for {
		err := m.coordinate(ctx, f)
		if err == nil {
			return nil
		}
		m.coordinator = ""
		if !r.again(ctx, err) {
			return r.wrap(err, "%s offsets of group %q", doing, m.s.cfg.group)
		}
	}
}

func (m *mirror) coordinate(ctx context.Context, f func(*wire.Conn) error) error {
	k := m.s.cluster
	var errs []error
	for _, a := range k.addresses() {
		if m.coordinator != "" || ctx.Err() != nil {
			break
		}
		err := k.with(ctx, a, func(c *wire.Conn) (err error) {
			m.coordinator, err = c.FindCoordinator(ctx, wire.GroupCoordinator, m.s.cfg.group)
			return err
		})
		if err != nil {
			errs = append(errs, err)
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case m.coordinator == "":
		return &brokersError{errs}
	}
	return k.with(ctx, m.coordinator, f)
}
