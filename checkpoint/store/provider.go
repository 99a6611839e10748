package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/vfs"
)

// ProviderConfig says what a [Provider] works on. Store is required.
type ProviderConfig[K comparable, S any] struct {
	// Store is the root; it belongs to this provider alone. If it is a vfs.Dir
	// its tag must be Tag, and one that no other run of the root has.
	Store vfs.Store
	Tag   string
	// Name is the store's name; "" means "default".
	Name string
	// State encodes states; nil means codec.For.
	State codec.Codec[S]

	// Run is the run's id, unlike that of any other run of the root; "" means a
	// random one. Host and PID are told to those who find the root owned; "" and 0
	// mean this machine's and this process's.
	Run  string
	Host string
	PID  int
	// Takeover says what to do about another run that owns the root.
	Takeover checkpoint.Takeover

	// Cache is the number of versions, the newest ones, that are kept in memory:
	// 0 means 2, a negative number none.
	Cache int
	// Policy says when snapshots are due, the zero Policy being the default;
	// Retain is the number of good ones that are kept, 0 meaning 2.
	Policy Policy
	Retain int
	// Compression is that of files; the zero value is none.
	Compression statefile.Compression
	// RetryLimit bounds how long one failing call is tried again: 0 means 30 s,
	// a negative number that there is no second try.
	RetryLimit time.Duration
	// Clock is for tests; nil means that of the machine.
	Clock clock.Clock
	// Notice is told what maintenance meets; nil means nobody.
	Notice func(Notice)
}

// DefaultCache is the number of versions that are kept in memory.
const DefaultCache = 2

// Provider is a [Versions] on a root of its own, which has the form of every
// root, with one operator of one partition: so P1–P5 hold by the same code, and
// the same tools read it. Each version is an epoch without sources. What another
// run does to the root is found out at the next commit.
//
// A handle on the newest version costs nothing to open; one on an older version,
// or a second one on the newest, copies all its keys. Its methods may be called
// from any goroutine.
type Provider[K comparable, S any] struct {
	c     ProviderConfig[K, S]
	key   *codec.Key[K]
	state codec.Codec[S]
	clone func(S) (S, error) // nil: states hold no references
	isNil bool               // states can be nil

	// committing is held over a commit, maintenance, and the opening of a
	// session; it protects what follows.
	committing sync.Mutex
	session    *checkpoint.Session
	after      uint64 // term of a session that must be opened again
	pending    bool   // the session's next epoch is planned already
	maint      *Maintainer
	dead       error // a newer run has the root

	mu     sync.Mutex // cache; held for short
	op     *Operator[K, S]
	commit *checkpoint.Commit // the newest
	load   *LoadStats         // how the newest version was loaded, if it was
	cached map[uint64]*held[K, S]
	closed bool
	hits   int64
	misses int64
	bad    int64 // snapshots that loads had to do without
	forced int64 // by sessions that are over
	stats  Stats // of the session's maintenance
}

var _ Versions[string, int] = (*Provider[string, int])(nil)

// OpenProvider makes this run the owner of the root and finds the newest
// version. It loads none. Errors: those of checkpoint.Open; *codec.TypeError.
func OpenProvider[K comparable, S any](ctx context.Context, c ProviderConfig[K, S]) (*Provider[K, S], error) {
	c.Name = cmp.Or(c.Name, "default")
	c.Cache = cmp.Or(c.Cache, DefaultCache)
	c.Run = cmp.Or(c.Run, rand.Text())
	if c.Store == nil {
		return nil, fmt.Errorf("store %s: a vfs.Store is required", c.Name)
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	machine := vfs.Disk()
	if c.Host == "" {
		var err error
		if c.Host, err = machine.Hostname(); err != nil {
			return nil, fmt.Errorf("store %s: the name of this host: %w", c.Name, err)
		}
	}
	c.PID = cmp.Or(c.PID, machine.PID())
	p := &Provider[K, S]{c: c, cached: map[uint64]*held[K, S]{}}
	var err error
	if p.key, err = codec.KeyFor[K](); err != nil {
		return nil, err
	}
	if p.state, _, err = codec.Use(c.State); err != nil {
		return nil, err
	}
	if codec.HasRefs[S]() {
		p.clone = codec.ClonerOf(p.state)
	}
	switch reflect.TypeFor[S]().Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		p.isNil = true
	}
	p.committing.Lock()
	defer p.committing.Unlock()
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// open opens the session, if there is none. committing is held.
func (p *Provider[K, S]) open(ctx context.Context) error {
	if p.dead != nil || p.session != nil {
		return p.dead
	}
	schema, err := codec.SchemaFor(p.state)
	if err != nil {
		return err
	}
	cfg := checkpoint.Config{
		Store: p.c.Store, Run: p.c.Run, After: p.after, Host: p.c.Host, PID: p.c.PID, Takeover: p.c.Takeover, Interval: 1,
		Now:  func() int64 { return p.c.Clock.Now().UnixNano() },
		Wait: p.wait,
		Operators: []checkpoint.JobOperator{{PartitionsGiven: true, Operator: checkpoint.Operator{
			Name: p.c.Name, Kind: "store", Partitions: 1, Partitioner: "hash",
			KeyCodec: statefile.KeyID[K](), StateCodec: p.state.ID(), Key: p.key.Schema(), State: schema,
		}}},
		Options: checkpoint.Options{RetryLimit: p.c.RetryLimit},
	}
	s, err := checkpoint.Open(ctx, cfg)
	if err != nil {
		return p.lost(err)
	}
	start := s.Start()
	op, err := NewOperator(Config[K, S]{
		Store: p.c.Store, Root: s.Root(), Operator: start.Operators[0], Key: p.key, State: p.state,
		Put: s.Put, Term: s.Term(), Deltas: p.c.Compression, Snapshots: p.c.Compression, Expect: p.c.Policy.filled().Versions,
	})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	p.session, p.pending, p.after, p.maint = s, start.Pending != nil, 0, nil
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forced += p.stats.Forced
	p.stats = Stats{}
	p.op = op
	if p.commit != start.Commit && (p.commit == nil || start.Commit == nil || chainOf(p.commit) != chainOf(start.Commit)) {
		p.drop() // another run has gone on
	}
	p.commit = start.Commit
	return nil
}

// chainOf is the chain hash of the store's version.
func chainOf(c *checkpoint.Commit) statefile.Sum { return c.Operators[0].Partitions[0].Chain }

// wait is how the session waits between two tries.
func (p *Provider[K, S]) wait(ctx context.Context, d time.Duration) error {
	if clock.Wait(ctx, p.c.Clock, d) != nil {
		return ctx.Err()
	}
	return nil
}

// lost remembers that a newer run has the root.
func (p *Provider[K, S]) lost(err error) error {
	if errors.Is(err, checkpoint.ErrNotOwner) {
		p.dead = err
	}
	return err
}

// end ends a session in which something failed; the next use opens another one,
// under the next term, so that no name is written twice. committing is held.
func (p *Provider[K, S]) end(ctx context.Context, err error) error {
	s := p.session
	p.session = nil
	if errors.Is(err, checkpoint.ErrRestart) {
		p.after = s.Term()
	}
	if aerr := s.Aborted(ctx, err); aerr != nil {
		err = aerr
	}
	return p.lost(errors.Join(err, s.Close()))
}

// Newest is the newest version.
func (p *Provider[K, S]) Newest() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest()
}

func (p *Provider[K, S]) newest() uint64 {
	if p.commit == nil {
		return 0
	}
	return p.commit.Epoch
}

// Close gives the root back and lets go of the versions in memory. Open handles
// can still be read and aborted.
func (p *Provider[K, S]) Close() error {
	p.committing.Lock()
	defer p.committing.Unlock()
	p.mu.Lock()
	p.closed = true
	p.drop()
	p.mu.Unlock()
	if p.dead == nil {
		p.dead = ErrClosed
	}
	if p.session == nil {
		return nil
	}
	err := p.session.Close()
	p.session = nil
	return err
}

// Maintain does one round of maintenance.
func (p *Provider[K, S]) Maintain(ctx context.Context) error {
	p.committing.Lock()
	defer p.committing.Unlock()
	if err := p.open(ctx); err != nil {
		return err
	}
	m, err := p.maintainer(ctx)
	if err != nil {
		return err
	}
	err = m.Round(ctx)
	p.count(m)
	return err
}

// count takes over the counters of maintenance.
func (p *Provider[K, S]) count(m *Maintainer) {
	s := m.Stats()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats = s
}

// maintainer gives the session's maintainer; the newest version is loaded for it
// if that has not been done, so that it knows what is good. committing is held.
func (p *Provider[K, S]) maintainer(ctx context.Context) (*Maintainer, error) {
	if p.maint != nil {
		return p.maint, nil
	}
	p.mu.Lock()
	newest, load := p.commit, p.load
	p.mu.Unlock()
	if newest != nil && (load == nil || load.Version != newest.Epoch) {
		h, err := p.acquire(ctx, newest.Epoch, true)
		if err != nil {
			return nil, err
		}
		p.release(h)
		p.mu.Lock()
		load = p.load
		p.mu.Unlock()
	}
	var loads []LoadStats
	if newest != nil {
		loads = []LoadStats{*load}
	}
	m, err := NewMaintainer(MaintainerConfig{
		Store: p.c.Store, Root: p.session.Root(), Clock: p.c.Clock, Tag: p.c.Tag, Term: p.session.Term(),
		Policy: p.c.Policy, Retain: p.c.Retain, Notice: p.c.Notice,
		Units: []Unit{{Number: p.session.Start().Operators[0].Number, Pin: p.pin}},
	}, newest, loads)
	if err == nil {
		p.maint = m
	}
	return m, err
}

// pin holds the newest version for its snapshot.
func (p *Provider[K, S]) pin(part int) (Pinned, error) {
	p.mu.Lock()
	version, op := p.newest(), p.op
	p.mu.Unlock()
	h, err := p.acquire(context.Background(), version, false)
	if err != nil {
		return Pinned{}, err
	}
	return Pinned{
		Version: version,
		Write:   func(ctx context.Context) (Written, error) { return op.Snapshot(ctx, part, version, h.m) },
		Release: func() { p.release(h) },
	}, nil
}

func newMap[K comparable, S any]() (*statemap.Map[K, S], error) {
	return statemap.New[K, S](statemap.Options[K]{NoAutoDetach: true})
}
