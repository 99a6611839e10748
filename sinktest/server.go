package sinktest

import (
	"fmt"
	"sync"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// Kind is a kind of system that a Server plays.
type Kind int

// The kinds of systems.
const (
	// Kafka fences by InitProducerID: the last one wins, and terms are not known.
	// Transactions may be aborted for taking too long, a commit is not settled at
	// once, and the memory can be read before it is.
	Kafka Kind = iota
	// SQL has one row with fence and memory, changed by compare and set in the
	// transaction of the data.
	SQL
	// FileLog is a log whose next number is taken exclusively.
	FileLog
)

// String names the kind.
func (k Kind) String() string { return [...]string{"kafka", "sql", "filelog"}[k] }

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{Kafka, SQL, FileLog} }

// Row is a row that readers of a Server see.
type Row struct {
	// Root and Unit say who wrote it.
	Root, Unit string
	// Epoch is that of its transaction.
	Epoch uint64
	// Part is where it belongs.
	Part sink.Part
	// Data is what was encoded.
	Data string
}

// Server is a system in memory that takes output exactly once: for tests of what
// writes to sinks. It outlives the units that are its clients, as a database
// outlives processes. Its methods may be called from any goroutine.
type Server struct {
	kind Kind
	flaw string // the fault of a deliberately broken one

	mu    sync.Mutex
	units map[string]*account
	rows  []Row
}

// account is what the server holds for one root and unit.
type account struct {
	root, unit string
	mem        *sink.Memory

	// Kafka
	session int  // producer epoch
	txn     *txn // open
	ended   int  // session of the last commit, so that EndTxn can be repeated
	markers int  // calls until the last commit is settled
	older   *sink.Memory

	fence   uint64 // SQL
	entries []logEntry
}

type txn struct {
	epoch uint64
	rows  []Row
	mem   *sink.Memory
}

type logEntry struct {
	term uint64
	run  string
	mem  *sink.Memory // nil in a fence
	rows []Row
}

// NewServer makes an empty system.
func NewServer(kind Kind) *Server { return &Server{kind: kind, units: map[string]*account{}} }

// Unit makes a client, as each run makes its own. Every request passes in before
// it reaches the server, as a call of vfs.KindOther whose path is the unit's name,
// a slash, and the request; nil is allowed.
func (s *Server) Unit(name string, in vfs.Injector) sink.Unit {
	switch s.kind {
	case Kafka:
		return &kafkaUnit{client: client{s: s, name: name, in: in}}
	case SQL:
		return &sqlUnit{client{s: s, name: name, in: in}}
	default:
		return &logUnit{client: client{s: s, name: name, in: in}}
	}
}

// Rows are the rows that readers see, those of one part in order.
func (s *Server) Rows() []Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Row(nil), s.rows...)
}

// Memory is what the server remembers for a root and unit, as a test sees it.
func (s *Server) Memory(root, unit string) (sink.Memory, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.units[root+"/"+unit]; a != nil && a.mem != nil {
		return *a.mem, true
	}
	return sink.Memory{}, false
}

// Expire aborts every open transaction for taking too long and fences its
// producer, as Kafka does; other kinds have no such thing.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.units {
		if a.txn != nil && s.kind == Kafka {
			a.txn = nil
			a.session++
		}
	}
}

// client is what the clients of all kinds have in common.
type client struct {
	s     *Server
	name  string
	in    vfs.Injector
	hold  sink.Hold
	fence *sink.Fence // nil: not open
	open  bool        // a transaction is under way
	gen   int         // fences so far: transactions of older ones are dead
}

// Name is the unit's name.
func (c *client) Name() string { return c.name }

// Close ends the client.
func (c *client) Close() error {
	c.fence, c.open = nil, false
	c.gen++
	c.hold.Release()
	return nil
}

// take is how Fence begins.
func (c *client) take(f sink.Fence) error {
	if c.s.flaw == "two runs have it" {
		return nil
	}
	return c.hold.Take(c.name, f)
}

// ask makes one request to the server.
func (c *client) ask(what string, do func(a *account) error) error {
	request := func() error {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		key := c.fence.Root + "/" + c.name
		if c.s.flaw == "roots share a memory" {
			key = c.name
		}
		a := c.s.units[key]
		if a == nil {
			a = &account{root: c.fence.Root, unit: c.name, session: 0, ended: -1}
			c.s.units[key] = a
		}
		return do(a)
	}
	if c.in == nil {
		return request()
	}
	return vfs.Inject(c.in, vfs.Call{Kind: vfs.KindOther, Path: c.name + "/" + what}, request)
}

func (c *client) ready(what string) error {
	if c.fence == nil {
		return fmt.Errorf("sink %s: %s: %w: fence first", c.name, what, sink.ErrMisuse)
	}
	return nil
}

// begin is the part of Begin that all have in common.
func (c *client) begin(epoch uint64) (*staged, error) {
	if err := c.ready("begin"); err != nil {
		return nil, err
	}
	if c.open {
		return nil, fmt.Errorf("sink %s: begin epoch %d: %w: another one is open", c.name, epoch, sink.ErrMisuse)
	}
	c.open = true
	return &staged{c: c, epoch: epoch, gen: c.gen}, nil
}

// staged is what the transactions of all kinds have in common: rows on their way.
type staged struct {
	c     *client
	epoch uint64
	gen   int
	over  bool // it was aborted, or its commit succeeded

	mu   sync.Mutex
	seen map[sink.Part]bool
	rows []Row
}

func (t *staged) live(m sink.Memory) error {
	if t.c.s.flaw == "dead transactions live on" && t.c.fence != nil && m.Epoch == t.epoch {
		return nil
	}
	if t.over || !t.c.open || t.gen != t.c.gen || m.Epoch != t.epoch {
		return fmt.Errorf("%w: epoch %d is not open", sink.ErrMisuse, m.Epoch)
	}
	return nil
}

// read takes a part's rows.
func (t *staged) read(p sink.Part, rows sink.Rows) (list []Row, err error) {
	t.mu.Lock()
	twice := t.seen[p]
	if t.seen == nil {
		t.seen = map[sink.Part]bool{}
	}
	t.seen[p] = true
	t.mu.Unlock()
	if twice {
		return nil, fmt.Errorf("%w: the part is written twice", sink.ErrMisuse)
	}
	err = rows(func(row []byte) error {
		list = append(list, Row{Root: t.c.fence.Root, Unit: t.c.name, Epoch: t.epoch, Part: p, Data: string(row)})
		return nil
	})
	if t.c.s.flaw == "rows turned round" {
		for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
			list[i], list[j] = list[j], list[i]
		}
	}
	if t.c.s.flaw == "last row lost" && len(list) > 0 {
		list = list[:len(list)-1]
	}
	return list, err
}

// end makes the client free for the next transaction.
func (t *staged) end() {
	if t.gen == t.c.gen && !t.over {
		t.c.open = false
	}
	t.over = true
}
