package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/sink/sqlsink"
	"github.com/statemill/statemill/sinktest"
	"github.com/statemill/statemill/vfs"
)

// database is one to test with.
type database struct {
	testing.TB
	dialect sqlsink.Dialect
	// client opens it as a process does, with requests that pass in.
	client func(in vfs.Injector) *sql.DB
	// rows is the table of texts, put the statement that adds one.
	rows, put string
	opts      []sqlsink.Option
	reader    *sql.DB
}

func sqliteFile(path string) func(context.Context) (driver.Conn, error) {
	name := "file:" + path + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"
	return func(context.Context) (driver.Conn, error) { return new(sqlite.Driver).Open(name) }
}

func sqliteDatabase(t testing.TB) *database {
	open := sqliteFile(filepath.Join(t.TempDir(), "db"))
	d := &database{TB: t, dialect: sqlsink.SQLite, rows: "texts", put: "INSERT INTO texts (text) VALUES (?)"}
	d.client = func(in vfs.Injector) *sql.DB { return d.open(&connector{open: open, in: in, whole: true}) }
	d.reader = d.client(nil)
	d.create("CREATE TABLE texts (n INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL)")
	return d
}

var tables atomic.Int64

// idle is when PostgreSQL gives up a transaction that stands still.
const idle = 250 * time.Millisecond

// server is a PostgreSQL; all cases read through one client, for it has connections
// for some hundred only.
type server struct {
	connect func(context.Context) (driver.Conn, error)
	reader  *sql.DB
}

func postgres(t testing.TB) *server {
	name := os.Getenv("STATEMILL_POSTGRES")
	if name == "" {
		t.Skip("needs PostgreSQL: STATEMILL_POSTGRES is not set (make test-sql starts one)")
	}
	cfg, err := pgx.ParseConfig(name)
	require.NoError(t, err)
	s := &server{connect: stdlib.GetConnector(*cfg).Connect}
	s.reader = sql.OpenDB(&connector{open: s.connect})
	t.Cleanup(func() { _ = s.reader.Close() })
	return s
}

func (s *server) database(t testing.TB) *database {
	n := fmt.Sprint(time.Now().UnixNano(), "_", tables.Add(1))
	d := &database{TB: t, dialect: sqlsink.PostgreSQL, rows: "texts_" + n, put: "INSERT INTO texts_" + n + " (text) VALUES ($1)",
		opts: []sqlsink.Option{sqlsink.Table("sinks_" + n), sqlsink.IdleTimeout(idle)}}
	d.client = func(in vfs.Injector) *sql.DB { return d.open(&connector{open: s.connect, in: in}) }
	d.reader = s.reader
	d.create("CREATE TABLE " + d.rows + " (n BIGSERIAL PRIMARY KEY, text TEXT NOT NULL)")
	t.Cleanup(func() {
		for _, table := range []string{d.rows, "sinks_" + n} {
			_, err := d.reader.Exec("DROP TABLE IF EXISTS " + table)
			require.NoError(t, err)
		}
	})
	return d
}

func (d *database) open(c driver.Connector) *sql.DB {
	db := sql.OpenDB(c)
	d.Cleanup(func() { _ = db.Close() })
	return db
}

func (d *database) create(statement string) {
	_, err := d.reader.Exec(statement)
	require.NoError(d, err)
}

// texts are all that a reader sees.
func (d *database) texts(ctx context.Context) (out []string, err error) {
	rows, err := d.reader.QueryContext(ctx, "SELECT text FROM "+d.rows+" ORDER BY n")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, rows.Err()
}

// process is a unit whose end ends its connections.
type process struct {
	*sqlsink.Unit
	db *sql.DB
}

func (p *process) Close() error {
	p.db.SetMaxIdleConns(-1) // those that there are
	p.db.SetMaxIdleConns(2)
	return p.Unit.Close()
}

func (d *database) unit(in vfs.Injector) *process {
	db := d.client(in)
	return &process{sqlsink.New("out", db, d.dialect, d.opts...), db}
}

func suite(t *testing.T, make func(t testing.TB) *database) {
	sinktest.Run(t, func(t *testing.T) sinktest.Case {
		d := make(t)
		return sinktest.Case{
			Open:       func(in vfs.Injector) sink.Unit { return d.unit(in) },
			Target:     d.put,
			Encode:     sqlsink.Exec(nil, "", func(text string) []any { return []any{text} }).Encode,
			Read:       d.texts,
			KnowsTerms: true,
		}
	})
}

// The unit keeps the contract of sinks on SQLite, with transactions as one request.
func TestSQLiteSuite(t *testing.T) { suite(t, sqliteDatabase) }

// And on PostgreSQL, dead, frozen and deafened at every request of its transactions.
func TestPostgreSQLSuite(t *testing.T) {
	s := postgres(t)
	suite(t, func(t testing.TB) *database {
		if os.Getenv("STATEMILL_SOAK") == "" && strings.Contains(t.Name(), "/Two") {
			t.Skip("takes minutes: STATEMILL_SOAK is not set (make soak sets it)")
		}
		return s.database(t)
	})
}

func fence(term uint64) sink.Fence { return sink.Fence{Root: "r", Run: "run", Term: term} }

func memory(epoch uint64) sink.Memory { return sink.Memory{Epoch: epoch, Term: 1} }

func part(target string) sink.Part { return sink.Part{Output: "o", Target: target, Of: 1} }
