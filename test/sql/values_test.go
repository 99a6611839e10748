package sqltest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/sink/sqlsink"
)

// onEach runs a test on SQLite, and on PostgreSQL if there is one.
func onEach(t *testing.T, test func(t *testing.T, d *database)) {
	t.Run("SQLite", func(t *testing.T) { test(t, sqliteDatabase(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, postgres(t).database(t)) })
}

// epoch writes values through a door, as epoch 1.
func epoch[T any](t *testing.T, u *sqlsink.Unit, door sink.Sink[T], values ...T) {
	t.Helper()
	require.NoError(t, u.Fence(t.Context(), fence(1)))
	tx, err := u.Begin(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, tx.Write(t.Context(), part(door.Target), func(yield func([]byte) error) error {
		for _, v := range values {
			row, err := door.Encode(nil, v)
			if err != nil {
				return err
			}
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, tx.Commit(t.Context(), memory(1)))
}

// What is NULL by way of database/sql is NULL by way of the sink: bytes that are nil, as
// the value of a tombstone is; and empty ones are not.
func TestNilBytesAreNull(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		kind := map[sqlsink.Dialect]string{sqlsink.SQLite: "BLOB", sqlsink.PostgreSQL: "BYTEA"}[d.dialect]
		table := strings.Replace(d.rows, "texts", "bytes", 1)
		d.create("CREATE TABLE " + table + " (n BIGINT, v " + kind + ")")
		t.Cleanup(func() { d.create("DROP TABLE " + table) })
		put := "INSERT INTO " + table + " (n, v) VALUES " + map[sqlsink.Dialect]string{sqlsink.SQLite: "(?, ?)", sqlsink.PostgreSQL: "($1, $2)"}[d.dialect]
		values := [][]byte{nil, {}, []byte("x")}
		for i, v := range values {
			_, err := d.reader.ExecContext(t.Context(), put, 10+i, v)
			require.NoError(t, err)
		}
		p := d.unit(nil)
		defer p.Close()
		epoch(t, p.Unit, sqlsink.Exec(p.Unit, put, func(i int) []any { return []any{i, values[i]} }), 0, 1, 2)
		rows, err := d.reader.QueryContext(t.Context(), "SELECT n, v IS NULL, v FROM "+table+" ORDER BY n")
		require.NoError(t, err)
		defer rows.Close()
		got := map[int]string{}
		for rows.Next() {
			var n int
			var null bool
			var v []byte
			require.NoError(t, rows.Scan(&n, &null, &v))
			if null {
				got[n] = "NULL"
			} else {
				got[n] = "bytes " + string(v)
			}
		}
		require.NoError(t, rows.Err())
		require.Equal(t, map[int]string{0: "NULL", 1: "bytes ", 2: "bytes x", 10: "NULL", 11: "bytes ", 12: "bytes x"}, got)
	})
}

// The table of memories may have a word of SQL for its name, and a name in large letters
// is the table that it is without quotes.
func TestTablesByAnyName(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		suffix := strings.TrimPrefix(d.rows, "texts")
		for _, name := range []string{"order", "group", "TABLE", "user", "Sinks" + suffix} {
			if d.dialect == sqlsink.PostgreSQL && !strings.HasPrefix(name, "Sinks") {
				d.create("DROP TABLE IF EXISTS public.\"" + strings.ToLower(name) + "\"")
			}
			p := d.unit(nil)
			u := sqlsink.New("out", p.db, d.dialect, sqlsink.Table(name))
			epoch(t, u, sqlsink.Exec(u, d.put, func(s string) []any { return []any{s} }), name)
			m, ok, err := u.Memory(t.Context())
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, memory(1), m)
			require.NoError(t, u.Close())
			if strings.HasPrefix(name, "Sinks") {
				var n int
				require.NoError(t, d.reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+name+" WHERE epoch = 1").Scan(&n), "without quotes")
				require.Equal(t, 1, n)
				d.create("DROP TABLE " + name)
			} else if d.dialect == sqlsink.PostgreSQL {
				d.create("DROP TABLE \"" + strings.ToLower(name) + "\"")
			}
			require.NoError(t, p.Close())
		}
	})
}
