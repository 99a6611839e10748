package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
)

// cluster knows the brokers and who leads what, and keeps idle connections. Its
// methods may be called from any goroutine.
type cluster struct {
	cfg   *config
	quota quota

	mu      sync.Mutex
	brokers map[int32]string
	leaders map[TopicPartition]int32
	best    string // the broker that answered last
	id      string // the cluster's own, "" if it is not known
	slow    bool   // the last round of questions met silence
	idle    map[string][]*wire.Conn
	closed  bool
}

func newCluster(cfg *config) *cluster {
	return &cluster{cfg: cfg, quota: quota{cfg: cfg}, brokers: map[int32]string{}, leaders: map[TopicPartition]int32{}, idle: map[string][]*wire.Conn{}}
}

// with runs f on a connection to addr. A connection that broke while it was idle
// (brokers close those after some minutes) is replaced once.
func (k *cluster) with(ctx context.Context, addr string, f func(*wire.Conn) error) error {
	for {
		if err := k.quota.heed(ctx, addr); err != nil {
			return err
		}
		c, used, err := k.take(ctx, addr)
		if err != nil {
			return err
		}
		err = f(c)
		if !c.Broken() { // else what it said may be damaged, and nobody throttles a connection that is gone
			k.quota.note(addr, c.Muted())
			k.put(c)
			return err
		}
		c.Close()
		if ctx.Err() != context.Canceled {
			k.dropIdle(addr) // they may be dead as well, and to find out can take a timeout each
		}
		if !used || ctx.Err() != nil || silent(err) {
			return err
		}
	}
}

// silent says that a broker did not answer in time.
func silent(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func (k *cluster) take(ctx context.Context, addr string) (c *wire.Conn, used bool, err error) {
	k.mu.Lock()
	if list := k.idle[addr]; len(list) > 0 {
		c, used = list[len(list)-1], true
		k.idle[addr] = list[:len(list)-1]
	}
	k.mu.Unlock()
	if c == nil {
		c, err = wire.Dial(ctx, k.cfg.dialer, addr, k.cfg.clientID, k.cfg.requestTimeout)
	}
	return c, used, err
}

func (k *cluster) put(c *wire.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		c.Close()
		return
	}
	k.idle[c.Addr()] = append(k.idle[c.Addr()], c)
}

func (k *cluster) dropIdle(addr string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.idle[addr] {
		c.Close()
	}
	delete(k.idle, addr)
}

func (k *cluster) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

func (k *cluster) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, list := range k.idle {
		for _, c := range list {
			c.Close()
		}
	}
	k.idle = map[string][]*wire.Conn{}
}

// addresses are the brokers to ask anything: the one that answered last, those of
// the options, then the others.
func (k *cluster) addresses() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	add := func(a string) {
		if a != "" && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	add(k.best)
	for _, a := range k.cfg.brokers {
		add(a)
	}
	known := len(out)
	for _, a := range k.brokers {
		add(a)
	}
	slices.Sort(out[known:])
	return out
}

// leastPatience is how long a broker gets at least when there are others to ask:
// a handshake takes several round trips.
const leastPatience = 1500 * time.Millisecond

// metadata is about, for the topics of the options.
func (k *cluster) metadata(ctx context.Context) (*wire.Metadata, error) {
	return k.about(ctx, k.cfg.topics)
}

// about asks the first broker that answers about topics, nil means all, and learns.
func (k *cluster) about(ctx context.Context, topics []string) (*wire.Metadata, error) {
	var errs []error
	addrs := k.addresses()
	// A broker that is silent must not use up the time of those that would answer. If
	// none did in its share of the time, the line may be slow: then each has all of it.
	patience := k.cfg.requestTimeout
	if k.mu.Lock(); !k.slow {
		patience = max(patience/time.Duration(len(addrs)), min(patience, leastPatience))
	}
	k.mu.Unlock()
	for _, addr := range addrs {
		m, err := k.metadataOf(ctx, addr, topics, patience)
		if err == nil {
			k.learn(m, addr)
			return m, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	err := &brokersError{errs}
	k.mu.Lock()
	k.slow = silent(err)
	k.mu.Unlock()
	return nil, err
}

func (k *cluster) metadataOf(ctx context.Context, addr string, topics []string, patience time.Duration) (m *wire.Metadata, err error) {
	if err := k.quota.heed(ctx, addr); err != nil { // which is not the broker's silence
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, tooLong(patience))
	defer cancel()
	err = k.with(ctx, addr, func(c *wire.Conn) (err error) {
		m, err = c.Metadata(ctx, topics)
		return err
	})
	return m, err
}

// brokersError is that no broker answered.
type brokersError struct{ errs []error }

func (e *brokersError) Error() string {
	text := make([]string, len(e.errs))
	for i, err := range e.errs {
		text[i] = err.Error()
	}
	return strings.Join(text, "; ")
}

func (e *brokersError) Unwrap() []error { return e.errs }

// Permanent: only if none of them can come back.
func (e *brokersError) Permanent() bool {
	return !slices.ContainsFunc(e.errs, passing)
}

func (k *cluster) learn(m *wire.Metadata, from string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.brokers, k.best, k.slow = m.Brokers, from, false
	if m.Cluster != "" {
		k.id = m.Cluster
	}
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			k.leaders[TopicPartition{t.Name, p.Number}] = p.Leader
		}
	}
}

// leader is the address of a partition's leader, "" if it is not known.
func (k *cluster) leader(p TopicPartition) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if node, ok := k.leaders[p]; ok {
		return k.brokers[node]
	}
	return ""
}

// errNoLeader: the metadata names none.
var errNoLeader = errors.New("the partition has no leader now")

// The pauses between tries double from the first to the longest.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

// retrier counts the tries of one piece of work.
type retrier struct {
	limit   time.Duration
	patient bool // with topics that were read and are not known any more
	began   time.Time
	tries   int
	pause   time.Duration
}

func (k *cluster) retrier() *retrier { return &retrier{limit: k.cfg.retryFor, patient: !k.cfg.onLoss} }

// A broker may not know a topic that was just made, or any topic when it has just
// started: it is asked so often before that is believed. That a topic does not exist any
// more ends a job: then it is asked for longer, for six seconds.
const (
	unknownTries = 7
	goneTries    = 12
)

// mayCome says that a topic that is missing is worth another try.
func (r *retrier) mayCome(err error) bool {
	most := unknownTries
	var gone *TopicGoneError
	if errors.As(err, &gone) && len(gone.Read) > 0 && r.patient && !sabotage.On("unknown-topic-is-deleted") {
		most = goneTries
	}
	return errors.Is(err, ErrNoTopic) && r.tries < most
}

// again waits before the next try; false means that there is none.
func (r *retrier) again(ctx context.Context, err error) bool {
	r.tries++
	if ctx.Err() != nil || !passing(err) && !r.mayCome(err) {
		return false
	}
	now := clock.System().Now()
	if r.tries == 1 {
		r.began, r.pause = now, firstPause
	}
	left := r.limit - now.Sub(r.began)
	if left <= 0 {
		return false
	}
	next := min(r.pause, left)
	r.pause = min(2*r.pause, longestPause)
	return clock.Wait(ctx, clock.System(), next) == nil
}

// wrap makes the error that the engine gets.
func (r *retrier) wrap(err error, format string, args ...any) error {
	return &Error{Doing: fmt.Sprintf(format, args...), Tries: r.tries, Err: err, final: !passing(err)}
}
