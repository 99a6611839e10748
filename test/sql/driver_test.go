package sqltest

import (
	"context"
	"database/sql/driver"
	"sync/atomic"

	"github.com/statemill/statemill/vfs"
)

// connector makes connections of a driver whose requests pass in. Where whole is set
// a transaction is one request, which is made or not, and whose answer may be lost:
// a run that is frozen in its midst would keep SQLite's lock for ever.
type connector struct {
	open  func(ctx context.Context) (driver.Conn, error)
	in    vfs.Injector
	whole bool
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner, c: c}, nil
}

func (c *connector) Driver() driver.Driver { return nil }

type conn struct {
	driver.Conn
	c    *connector
	tx   atomic.Bool
	lost error // what the answer to the transaction is
	gone atomic.Bool
}

// ask is a request. One whose answer was lost has broken the connection.
func (c *conn) ask(what string, do func() error) error {
	if c.c.in == nil || c.c.whole && c.tx.Load() {
		return do()
	}
	err := vfs.Inject(c.c.in, vfs.Call{Kind: vfs.KindOther, Path: "sql/" + what}, do)
	return err
}

func (c *conn) IsValid() bool {
	if c.gone.Load() {
		return false
	}
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

func (c *conn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *conn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.ask("exec", func() (err error) { r, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args); return err })
	return r, err
}

func (c *conn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.ask("query", func() (err error) { r, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args); return err })
	if err != nil && r != nil {
		r.Close()
	}
	return r, err
}

func (c *conn) PrepareContext(ctx context.Context, q string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, q)
	if err != nil {
		return nil, err
	}
	return &stmt{s, c}, nil
}

type stmt struct {
	driver.Stmt
	c *conn
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (r driver.Result, err error) {
	err = s.c.ask("exec", func() (err error) { r, err = s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args); return err })
	return r, err
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	c.lost = nil
	if c.c.whole && c.c.in != nil {
		f := c.c.in.Before(vfs.Call{Kind: vfs.KindOther, Path: "sql/transaction"})
		if f.Err != nil && !f.After {
			return nil, f.Err
		}
		c.lost = f.Err
		c.tx.Store(true)
		t, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
		return &tx{t, c}, err
	}
	var t driver.Tx
	err := c.ask("begin", func() (err error) { t, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts); return err })
	if err != nil && t != nil {
		_ = t.Rollback() // a driver that hears no answer closes the connection
	}
	return &tx{t, c}, err
}

type tx struct {
	driver.Tx
	c *conn
}

func (t *tx) Commit() error {
	if t.c.c.whole {
		t.c.tx.Store(false)
		if err := t.Tx.Commit(); err != nil {
			return err
		}
		return t.c.lost
	}
	return t.c.ask("commit", t.Tx.Commit)
}

func (t *tx) Rollback() error {
	t.c.tx.Store(false)
	return t.Tx.Rollback()
}
