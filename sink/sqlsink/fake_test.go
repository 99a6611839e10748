package sqlsink

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/statemill/statemill/vfs"
)

// server is a database in memory that knows the sink's statements, and "put" with
// one text. It behaves as PostgreSQL does: an update in a transaction locks its row,
// and others wait; the server ends transactions that stand still, here as soon as
// another one waits for them.
type server struct {
	mu     sync.Mutex
	made   bool
	table  map[[2]string]fakeRow
	texts  []string
	owner  *fakeConn // who has the lock
	ping   error     // what connections fail with
	noMake bool      // tables cannot be made, and somebody else makes them meanwhile
}

type fakeRow struct {
	fence          int64
	run            string
	epoch, term    int64
	output, digest string
}

func newServer() *server { return &server{table: map[[2]string]fakeRow{}} }

// open makes a client whose every request passes in.
func (s *server) open(in vfs.Injector) *sql.DB { return sql.OpenDB(&connector{s, in}) }

type connector struct {
	s  *server
	in vfs.Injector
}

func (c *connector) Connect(context.Context) (driver.Conn, error) {
	if c.s.ping != nil {
		return nil, c.s.ping
	}
	return &fakeConn{s: c.s, in: c.in}, nil
}

func (c *connector) Driver() driver.Driver { return nil }

type fakeConn struct {
	s    *server
	in   vfs.Injector
	tx   bool
	dead bool // the server has ended it
	// Of the transaction:
	table map[[2]string]fakeRow
	texts []string
}

var errNested = errors.New("a transaction within a transaction")

var errEnded = stateError("25P03")

// stateError is an error with PostgreSQL's code.
type stateError string

func (e stateError) Error() string { return "SQLSTATE " + string(e) }

func (e stateError) SQLState() string { return string(e) }

func (c *fakeConn) ask(what string, do func() error) error {
	request := func() error {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if c.dead {
			return errEnded
		}
		return do()
	}
	if c.in == nil {
		return request()
	}
	return vfs.Inject(c.in, vfs.Call{Kind: vfs.KindOther, Path: "sql/" + what}, request)
}

func (c *fakeConn) Prepare(q string) (driver.Stmt, error) {
	if strings.HasPrefix(q, "bad") {
		return nil, stateError("42601")
	}
	return &fakeStmt{c, q}, nil
}

func (c *fakeConn) Close() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.end()
	return nil
}

// IsValid is false for one that the server has ended.
func (c *fakeConn) IsValid() bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return !c.dead
}

func (c *fakeConn) end() {
	c.tx, c.table, c.texts = false, nil, nil
	if c.s.owner == c {
		c.s.owner = nil
	}
}

func (c *fakeConn) Begin() (driver.Tx, error) {
	err := c.ask("begin", func() error {
		if c.tx {
			return errNested
		}
		c.tx = true
		return nil
	})
	if err != nil && err != errNested {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		c.end() // a driver that hears no answer here closes the connection
		c.dead = true
	}
	return c, err
}

func (c *fakeConn) Commit() error {
	return c.ask("commit", func() error {
		maps.Copy(c.s.table, c.table)
		c.s.texts = append(c.s.texts, c.texts...)
		c.end()
		return nil
	})
}

func (c *fakeConn) Rollback() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.end()
	return nil
}

// lock takes the lock, from whoever stands still with it.
func (c *fakeConn) lock() {
	if o := c.s.owner; o != nil && o != c {
		o.end()
		o.dead = true
	}
	if c.tx {
		c.s.owner = c
	}
}

func (c *fakeConn) row(key [2]string) (fakeRow, bool) {
	if r, ok := c.table[key]; ok {
		return r, true
	}
	r, ok := c.s.table[key]
	return r, ok
}

func (c *fakeConn) put(key [2]string, r fakeRow) {
	if !c.tx {
		c.s.table[key] = r
		return
	}
	if c.table == nil {
		c.table = map[[2]string]fakeRow{}
	}
	c.table[key] = r
}

type fakeStmt struct {
	c *fakeConn
	q string
}

func (s *fakeStmt) Close() error  { return nil }
func (s *fakeStmt) NumInput() int { return -1 }

func (s *fakeStmt) Exec(args []driver.Value) (r driver.Result, err error) {
	n := int64(0)
	err = s.c.ask(s.q[:6], func() error {
		c, srv := s.c, s.c.s
		number := func(i int) int64 { return args[i].(int64) }
		text := func(i int) string { return args[i].(string) }
		switch {
		case strings.HasPrefix(s.q, "CREATE"):
			srv.made = true
			if srv.noMake {
				return stateError("23505")
			}
		case strings.HasPrefix(s.q, "SET LOCAL"):
		case s.q == "ROLLBACK":
			c.end()
		case strings.HasPrefix(s.q, "INSERT"):
			key := [2]string{text(0), text(1)}
			if _, ok := c.row(key); !ok {
				c.put(key, fakeRow{})
				n = 1
			}
		case strings.Contains(s.q, "SET fence"):
			c.lock()
			key := [2]string{text(2), text(3)}
			f, run := number(0), text(1)
			if row, ok := c.row(key); ok && (row.fence < f || row.fence == f && row.run == run) {
				if strings.Contains(s.q, "term = fence") {
					row.term = row.fence
				}
				row.fence, row.run = f, run
				c.put(key, row)
				n = 1
			}
		case strings.Contains(s.q, "SET epoch"):
			c.lock()
			key := [2]string{text(4), text(5)}
			row, ok := c.row(key)
			if ok && row.epoch < number(6) && (len(args) < 8 || row.fence < number(7) || row.fence == number(7) && row.run == text(9)) {
				row.epoch, row.term, row.output, row.digest = number(0), number(1), text(2), text(3)
				c.put(key, row)
				n = 1
			}
		case strings.HasPrefix(s.q, "put by "):
			switch v := args[0].(type) {
			case nil:
				c.texts = append(c.texts, "NULL")
			case []byte:
				c.texts = append(c.texts, "bytes "+string(v))
			default:
				c.texts = append(c.texts, text(0))
			}
		case strings.HasPrefix(s.q, "forbid"):
			return stateError("23514")
		default:
			return fmt.Errorf("statement %q is not known", s.q)
		}
		return nil
	})
	return driver.RowsAffected(n), err
}

func (s *fakeStmt) Query([]driver.Value) (driver.Rows, error) { return nil, errors.New("not used") }

func (s *fakeStmt) QueryContext(_ context.Context, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = s.c.ask("select", func() error {
		if !s.c.s.made {
			return stateError("42P01")
		}
		if strings.Contains(s.q, "COUNT") {
			n := int64(0)
			for key, r := range s.c.s.table {
				if key[0] != args[1].Value && key[1] == args[0].Value && r.epoch > 0 {
					n++
				}
			}
			rows = &fakeRows{names: []string{"count"}, list: [][]driver.Value{{n}}}
			return nil
		}
		out := &fakeRows{names: []string{"fence", "run", "epoch", "term", "output", "digest"}}
		if len(args) == 2 {
			if r, ok := s.c.row([2]string{args[0].Value.(string), args[1].Value.(string)}); ok {
				out.list = [][]driver.Value{{r.fence, r.run, r.epoch, r.term, r.output, r.digest}}
			}
		} else {
			out.names = out.names[:1]
		}
		rows = out
		return nil
	})
	return rows, err
}

type fakeRows struct {
	names []string
	list  [][]driver.Value
}

func (r *fakeRows) Columns() []string { return r.names }
func (r *fakeRows) Close() error      { return nil }

func (r *fakeRows) Next(dest []driver.Value) error {
	if len(r.list) == 0 {
		return io.EOF
	}
	copy(dest, r.list[0])
	r.list = r.list[1:]
	return nil
}

// seen is what readers see.
func (s *server) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.texts)
}
