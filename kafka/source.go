package kafka

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/kafka/internal/batch"
	"github.com/statemill/statemill/source"
)

// kafkaSource implements source.Source. The engine's goroutine plans; workers read.
type kafkaSource struct {
	cfg      config
	cluster  *cluster // of the open source
	decoders pool.FreeList[decoder]
	ahead    *ahead  // nil: nothing is fetched ahead
	mirror   *mirror // nil: no group
	watch    *watch
	news     news
	root     string // id of the checkpoint's, "" if there is none

	// Of the goroutine that plans.
	looked time.Time // when the cluster was last asked for what is new
	whole  bool      // the next plan asks for every partition's earliest offset

	mu       sync.Mutex
	open     bool
	begun    bool            // a plan was made
	parts    []*part         // in the order of plans
	absent   []*part         // set aside
	missed   map[string]bool // topics that reads have waited for in vain
	byName   map[string]*part
	anew     map[string]bool // topics that were made again under this run, or before it
	missing  []string        // topics that do not exist yet
	unproved unproved        // reads of the newest plan
	counts   map[string]int64
	planning time.Time // since when a plan has been trying, zero when none is
	planErr  error     // of the last try
}

// part is one partition. mu of the source protects all but the names.
type part struct {
	TopicPartition
	name string
	id   string // the topic's id, "" if the broker tells none

	epoch    int32 // the leader's when next was seen, -1 if it is not known
	doubtful bool  // next is from an earlier run: the log may be another one

	late   bool  // it appeared after the start: it begins with its first offset
	anew   bool  // its topic was made again: where a start is said to be is of the one before
	placed bool  // next is known
	back   bool  // it was set aside before
	next   int64 // all before it was planned
	stop   int64 // with StopAtEnd: where the input ends; -1 until the first plan

	done     int64     // all before it is committed; -1 before the first plan
	end      int64     // the log's end, as far as is known
	progress time.Time // when a read last moved
	stuck    time.Time // since when one has been waiting, zero when none is
	asked    time.Time // since when its leader has been asked for its end, zero when it has told
	told     bool      // that it is stalled
	held     held      // before open transactions

	losses []lostSpan // that were counted, disjoint, not before done

	size    float64 // bytes per record, 0 while unknown
	wire    float64 // bytes per offset as they are sent, 0 while unknown
	trusted int64   // a range of so many offsets may be judged by size
	glance  int     // bytes that a sample of a batch or so takes, 0 while unknown
}

func newPart(tp TopicPartition, id string) *part {
	return &part{TopicPartition: tp, name: tp.String(), id: id, stop: -1, done: -1, epoch: -1}
}

// decoder is what one Read needs and the next one can use.
type decoder struct {
	batch   batch.Decoder
	headers headers
}

// ending adds what only a source with StopAtEnd has.
type ending struct{ *kafkaSource }

// NewSource makes a source of Kafka records. Faults of the options are told by
// Open. The source can be opened again after Close.
//
// Its plan has a range for every partition, named like "topic-3", with the topic's
// id as its Epoch and the leader epoch as its Mark, where brokers tell them.
func NewSource(opts ...SourceOption) source.Source[Record] {
	s := &kafkaSource{cfg: newConfig(opts)}
	for _, m := range s.cfg.watches {
		m.bind(s)
	}
	if s.cfg.toEnd {
		return ending{s}
	}
	return s
}

// String names the source for messages.
func (s *kafkaSource) String() string { return "kafka " + s.cfg.subscription.String() }

// Validate implements source.Validator.
func (s *kafkaSource) Validate() error {
	if err := s.cfg.valid(); err != nil {
		return &Error{Doing: "options", Err: err, final: true}
	}
	return nil
}

// Open implements source.Source: it finds the brokers, the topics and their
// partitions within RetryFor.
func (s *kafkaSource) Open(ctx context.Context, last *source.Plan) error {
	if err := s.Validate(); err != nil {
		return err
	}
	s.stop()
	s.news.Reset()
	s.mu.Lock()
	s.counts = map[string]int64{}
	s.mu.Unlock()
	k := newCluster(&s.cfg)
	found, at, err := s.locate(ctx, k, last)
	if err != nil {
		k.close()
		return err
	}
	s.mu.Lock()
	s.cluster, s.open, s.begun = k, true, false
	s.parts, s.missing, s.byName = at.parts, found.missing, map[string]*part{}
	s.absent, s.missed, s.anew = at.absent, map[string]bool{}, at.again
	s.unproved.proveAnew(last)
	for _, p := range slices.Concat(at.gone, at.absent, at.parts) {
		s.byName[p.name] = p
	}
	s.planning, s.planErr = time.Time{}, nil
	s.mu.Unlock()
	s.looked, s.whole = s.cfg.clock.Now(), true
	if len(at.absent) > 0 {
		s.looked = s.looked.Add(-s.cfg.refreshEvery)
	}
	s.start()
	if s.cfg.pattern != nil && len(at.parts)+len(at.absent) == 0 {
		s.notice("no topic matches %v: the pattern is looked at again every %v", s.cfg.pattern, s.cfg.refreshEvery)
	}
	for _, tp := range found.lacking {
		s.notice("topic %q partition %d does not exist: it is looked for every %v", tp.Topic, tp.Partition, s.cfg.refreshEvery)
	}
	for _, t := range found.missing {
		s.notice("topic %q does not exist: it is looked for every %v", t, s.cfg.refreshEvery)
	}
	return nil
}

// start starts what works beside the engine.
func (s *kafkaSource) start() {
	if s.cfg.readAhead > 0 {
		s.ahead = newAhead(s)
	}
	if s.cfg.group != "" {
		s.mirror = newMirror(s)
	}
	s.watch = newWatch(s)
}

// stop ends it, and the connections.
func (s *kafkaSource) stop() {
	if s.ahead != nil {
		s.ahead.close()
	}
	if s.mirror != nil {
		s.mirror.close()
	}
	if s.watch != nil {
		s.watch.close()
	}
	s.ahead, s.mirror, s.watch = nil, nil, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster != nil {
		s.cluster.close()
	}
	s.open = false
}

// tooLong is why a start ends.
type tooLong time.Duration

func (d tooLong) Error() string { return fmt.Sprintf("no answer within %v", time.Duration(d)) }

// Timeout tells it apart from other failures, as in net.Error.
func (d tooLong) Timeout() bool { return true }

// SetRoot implements source.Rooted.
func (s *kafkaSource) SetRoot(id string) { s.root = id }

// Committed implements source.Source. Positions are the engine's; a group gets a
// mirror of them.
func (s *kafkaSource) Committed(ctx context.Context, plan source.Plan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	for _, r := range plan.Ranges {
		if p := s.byName[r.Partition]; p != nil && p.id == r.Epoch {
			p.done = max(p.done, r.Until)
		}
	}
	plan = s.mirrorable(plan)
	s.mu.Unlock()
	if s.mirror != nil {
		s.mirror.committed(plan)
	}
	return nil
}

// Close implements source.Source. It takes half a second at most: offsets that could
// not be mirrored by then are given up.
func (s *kafkaSource) Close() error {
	s.stop()
	return nil
}

// Locate implements source.Locator.
func (s *kafkaSource) Locate(partition string, offset int64) string {
	if p, _ := s.part(partition); p != nil {
		return fmt.Sprintf("topic %q partition %d offset %d", p.Topic, p.Partition, offset)
	}
	return fmt.Sprintf("partition %q offset %d", partition, offset)
}

// part finds a partition by its name in plans.
func (s *kafkaSource) part(name string) (p *part, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name], s.open
}

// Done implements source.Bounded.
func (s ending) Done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || s.cfg.wait && len(s.missing) > 0 && len(s.parts)+len(s.absent) == 0 {
		return false // there is a topic to come, by choice
	}
	return !slices.ContainsFunc(s.parts, func(p *part) bool { return p.stop < 0 || p.next < p.stop })
}

// unixMilli is a record's time.
func unixMilli(ms int64) time.Time {
	if ms < 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
