package sqlsink

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

func fence(term uint64) sink.Fence { return sink.Fence{Root: "r", Run: "run", Term: term} }

// unit is a client that has fenced.
func unit(t *testing.T, s *server, in vfs.Injector, term uint64) *Unit {
	db := s.open(in)
	t.Cleanup(func() { _ = db.Close() })
	u := New("out", db, PostgreSQL)
	require.NoError(t, u.Fence(t.Context(), fence(term)))
	return u
}

func write(t *testing.T, u *Unit, epoch uint64, statement, text string) (sink.Tx, sink.Memory) {
	tx, err := u.Begin(t.Context(), epoch)
	require.NoError(t, err)
	door := Exec(u, statement, func(text string) []any { return []any{text} })
	row, err := door.Encode(nil, text)
	require.NoError(t, err)
	require.NoError(t, tx.Write(t.Context(), sink.Part{Output: "o", Target: statement, Of: 1}, func(yield func([]byte) error) error { return yield(row) }))
	return tx, sink.Memory{Epoch: epoch, Term: u.fence.Term}
}

func TestFaultsOfOptions(t *testing.T) {
	db := newServer().open(nil)
	defer db.Close()
	for text, u := range map[string]*Unit{
		"the *sql.DB is nil":   New("out", nil, SQLite),
		"1 to 100 bytes":       New("", db, SQLite),
		"dialect is not known": New("out", db, 0),
		`table "a b"`:          New("out", db, SQLite, Table("a b")),
		"more than one dot":    New("out", db, SQLite, Table("a.b.c")),
		`table "x;drop"`:       New("out", db, SQLite, Table("x;drop")),
		"IdleTimeout is 1ns":   New("out", db, SQLite, IdleTimeout(1)),
		"an option is nil":     New("out", db, SQLite, nil),
	} {
		err := u.Fence(t.Context(), fence(1))
		require.ErrorContains(t, err, text)
		require.Equal(t, err, u.Validate(), "without a call")
		var p interface{ Permanent() bool }
		require.ErrorAs(t, err, &p)
		require.True(t, p.Permanent())
	}
	require.ErrorIs(t, New("out", db, SQLite, Table("s.t")).Fence(t.Context(), fence(0)), sink.ErrMisuse)
	require.Equal(t, "SQLite PostgreSQL dialect 7", SQLite.String()+" "+PostgreSQL.String()+" "+Dialect(7).String())
	require.Nil(t, Exec[int](nil, "x", nil).Unit)
	require.Nil(t, Exec[int](nil, "x", nil).Encode)
}

func TestStatementsOfTheDialects(t *testing.T) {
	require.Equal(t, "a = $1 AND b = $2", PostgreSQL.own("a = ? AND b = ?"))
	require.Equal(t, "a = ? AND b = ?", SQLite.own("a = ? AND b = ?"))
	require.Equal(t, "SET LOCAL idle_in_transaction_session_timeout = 1500", PostgreSQL.limit(1500*time.Millisecond))
	require.Empty(t, PostgreSQL.limit(0))
	require.Empty(t, SQLite.limit(time.Second))
}

// A word of SQL is a name too, and a name stays the table that it was without quotes.
func TestNamesOfTables(t *testing.T) {
	require.Equal(t, `"order"`, PostgreSQL.quoted("order"))
	require.Equal(t, `"my_schema"."sinks"`, PostgreSQL.quoted("My_Schema.Sinks"), "PostgreSQL makes names small that are not in quotes")
	require.Equal(t, `"main"."Order"`, SQLite.quoted("main.Order"))
	require.Equal(t, `SELECT fence FROM "user" WHERE root = $1`, New("out", nil, PostgreSQL, Table("USER")).sql("SELECT fence FROM %s WHERE root = ?"))
	require.Contains(t, create(SQLite.quoted("group")), `CREATE TABLE IF NOT EXISTS "group" (root`)
}

// codeError is an error with SQLite's code.
type codeError int

func (e codeError) Error() string { return "code" }

func (e codeError) Code() int { return int(e) }

func TestWhatCannotPass(t *testing.T) {
	require.True(t, SQLite.permanent(codeError(19|5<<8)))
	require.False(t, SQLite.permanent(codeError(5)), "busy")
	require.False(t, SQLite.permanent(errors.New("x")))
	require.True(t, PostgreSQL.permanent(stateError("23505")))
	require.False(t, PostgreSQL.permanent(stateError("40001")))
	require.False(t, PostgreSQL.permanent(stateError("")))
	require.False(t, PostgreSQL.permanent(errors.New("x")))
	require.False(t, Dialect(0).permanent(stateError("23505")))

	u := unit(t, newServer(), nil, 1)
	for _, statement := range []string{"bad", "forbid"} {
		tx, m := write(t, u, 1, statement, "x")
		err := tx.Commit(t.Context(), m)
		require.ErrorContains(t, err, statement)
		var p interface{ Permanent() bool }
		require.ErrorAs(t, err, &p, "a wrong statement is not tried again and again")
		require.NoError(t, tx.Abort(t.Context()))
	}
}

// CE10: a fence leaves the term of who wrote the memory.
func TestFenceKeepsTheWritersTerm(t *testing.T) {
	s := newServer()
	u := unit(t, s, nil, 1)
	tx, m := write(t, u, 1, "put by $1", "x")
	require.NoError(t, tx.Commit(t.Context(), m))
	for term := uint64(2); term < 4; term++ {
		got, ok, err := unit(t, s, nil, term).Memory(t.Context())
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, m, got)
	}
}

// CE1: who was fenced commits nothing, and is told by whom.
func TestFencedRunCommitsNothing(t *testing.T) {
	s := newServer()
	u := unit(t, s, nil, 1)
	tx, m := write(t, u, 1, "put by $1", "x")
	unit(t, s, nil, 2)
	var e *sink.NotOwnerError
	require.ErrorAs(t, tx.Commit(t.Context(), m), &e)
	require.Equal(t, uint64(2), e.Newer)
	require.Empty(t, s.seen())
	_, _, err := u.Memory(t.Context())
	require.ErrorIs(t, err, sink.ErrNotOwner)
}

// A copy of the root has the same term and another run.
func TestOtherRunOfTheSameTerm(t *testing.T) {
	s := newServer()
	u := unit(t, s, nil, 1)
	f := fence(1)
	f.Run = "copy"
	db := s.open(nil)
	defer db.Close()
	require.ErrorIs(t, New("out", db, PostgreSQL).Fence(t.Context(), f), sink.ErrNotOwner)
	tx, m := write(t, u, 1, "put by $1", "x")
	require.NoError(t, tx.Commit(t.Context(), m))
}

// The answer to a commit is lost: the same call finds that all is done.
func TestLostAnswer(t *testing.T) {
	s := newServer()
	in := &vfs.Faults{}
	u := unit(t, s, in, 1)
	tx, m := write(t, u, 1, "put by $1", "x")
	in.Fail(vfs.Rule{Path: "sql/commit", After: true})
	require.ErrorIs(t, tx.Commit(t.Context(), m), vfs.ErrInjected)
	require.NoError(t, tx.Commit(t.Context(), m))
	require.Equal(t, []string{"x"}, s.seen())
	// Another memory of that epoch is not what was written.
	tx, m = write(t, u, 1, "put by $1", "y")
	m.Output[0]++
	require.ErrorIs(t, tx.Commit(t.Context(), m), sink.ErrEpoch)
	require.Equal(t, []string{"x"}, s.seen())
}

// What a row has as nil bytes arrives in the driver as NULL.
func TestNilBytesInTheDriver(t *testing.T) {
	s := newServer()
	u := unit(t, s, nil, 1)
	tx, err := u.Begin(t.Context(), 1)
	require.NoError(t, err)
	const statement = "put by $1"
	door := Exec(u, statement, func(v []byte) []any { return []any{v} })
	require.NoError(t, tx.Write(t.Context(), sink.Part{Output: "o", Target: statement, Of: 1}, func(yield func([]byte) error) error {
		for _, v := range [][]byte{nil, {}, []byte("x")} {
			row, err := door.Encode(nil, v)
			require.NoError(t, err)
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, tx.Commit(t.Context(), sink.Memory{Epoch: 1, Term: 1}))
	require.Equal(t, []string{"NULL", "bytes ", "bytes x"}, s.seen())
}

func TestPartIsWrittenOnce(t *testing.T) {
	u := unit(t, newServer(), nil, 1)
	tx, _ := write(t, u, 1, "put by $1", "x")
	err := tx.Write(t.Context(), sink.Part{Output: "o", Target: "put by $1", Of: 1}, func(func([]byte) error) error { return nil })
	require.ErrorIs(t, err, sink.ErrMisuse)
}

func TestRowsOfOthers(t *testing.T) {
	u := unit(t, newServer(), nil, 1)
	tx, err := u.Begin(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, tx.Write(t.Context(), sink.Part{Output: "o", Target: "put by $1", Of: 1}, func(yield func([]byte) error) error { return yield([]byte("plain text")) }))
	require.ErrorIs(t, tx.Commit(t.Context(), sink.Memory{Epoch: 1}), errRow)
}

func TestSomebodyElseChangesTheTable(t *testing.T) {
	s := newServer()
	u := unit(t, s, nil, 1)
	key := [2]string{"r", "out"}
	s.table[key] = fakeRow{fence: 1, run: "run", epoch: 3, output: "no sum"}
	_, _, err := u.Memory(t.Context())
	require.ErrorContains(t, err, "are no memory")
	delete(s.table, key)
	_, _, err = u.Memory(t.Context())
	require.ErrorContains(t, err, "has lost the row")
	tx, m := write(t, u, 1, "put by $1", "x")
	require.ErrorContains(t, tx.Commit(t.Context(), m), "has lost the row")
}

// Two runs make the table at the same time; one of them is told that it is there.
func TestTableIsMadeByTwo(t *testing.T) {
	s := newServer()
	s.noMake = true
	unit(t, s, nil, 1)
}

func TestDatabaseAway(t *testing.T) {
	s := newServer()
	s.ping = errors.New("connection refused")
	db := s.open(nil)
	defer db.Close()
	err := New("out", db, PostgreSQL).Fence(context.Background(), fence(1))
	require.ErrorIs(t, err, s.ping)
	require.ErrorContains(t, err, "sink out: make the table statemill_sinks")
}

// The user is told when a root is new where others have written, once.
func TestNoticeOfOtherRoots(t *testing.T) {
	s := newServer()
	u := unit(t, s, nil, 1)
	tx, m := write(t, u, 1, "put by $1", "x")
	require.NoError(t, tx.Commit(t.Context(), m))
	var said []string
	require.NoError(t, u.Close())
	for range 2 {
		require.NoError(t, u.Fence(t.Context(), sink.Fence{Root: "fork", Run: "run", Term: 1, Notice: func(text string) { said = append(said, text) }}))
	}
	require.Len(t, said, 1)
	require.Contains(t, said[0], "other roots that have written: 1")
}
