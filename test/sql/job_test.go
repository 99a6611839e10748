package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/internal/oracle"
	"github.com/statemill/statemill/sink/sqlsink"
	"github.com/statemill/statemill/vfs"
)

var script = [][]string{{"a", "b", "a"}, {"c"}, {}, {"b", "c", "d", "a"}}

// want is what the job writes; parts of an epoch come in the order of their numbers.
const want = "a=1 a=2 b=1 c=1 a=3 c=2 b=2 d=1"

// life is one process of a job that counts words and writes every count to the
// database, and the newest ones to a table of totals.
func life(t *testing.T, d *database, disk *vfs.Mem, n int, in *vfs.Faults) error {
	store, err := vfs.NewDir(vfs.WithFaults(disk, in), "/w/ckpt", fmt.Sprint("life", n))
	require.NoError(t, err)
	k := clock.NewManual(time.Unix(1_000_000+int64(n)*3600, 0))
	h := harness.New()
	h.RetryAtOnce()
	h.MaintainInline()
	epoch := uint64(0)
	ssc := dstream.NewStreamingContext(time.Second, dstream.WithClock(k), dstream.WithHarness(h), dstream.WithParallelism(1),
		dstream.WithIORetry(0), dstream.WithCheckpointStore(store),
		dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) { epoch = max(epoch, p.Batch.Epoch) }}))
	words := dstream.From(ssc, "words", &oracle.Script[string]{Batches: script, Partitions: 2})
	ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
	counts := dstream.MapWithState(ones, dstream.Function(
		func(w string, one dstream.Option[int], s *dstream.State[int]) dstream.Pair[string, int] {
			s.Update(s.OrElse(0) + one.OrElse(0))
			return dstream.KV(w, s.Get())
		}).Named("counts").NumPartitions(2))
	u := d.unit(in)
	defer u.Close()
	dstream.Output(counts, "texts", sqlsink.Exec(u.Unit, d.put, func(c dstream.Pair[string, int]) []any {
		return []any{fmt.Sprintf("%s=%d", c.Key, c.Value)}
	}))
	dstream.Output(counts, "totals", sqlsink.Exec(u.Unit, "INSERT INTO totals (word, n) VALUES (?, ?) ON CONFLICT (word) DO UPDATE SET n = totals.n + 1",
		func(c dstream.Pair[string, int]) []any { return []any{c.Key, 1} }))
	if err := ssc.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range 2 * len(script) {
		if epoch >= uint64(len(script)) {
			break
		}
		k.Advance(time.Second)
		if err := h.WaitTick(ctx, k.Now()); err != nil {
			_ = ssc.Stop(ctx)
			return err
		}
	}
	return ssc.Stop(ctx)
}

// TestSQLiteJob: a whole job loses power at every call to the disk and to the
// database; each count is in the one table once, and the other one, which adds, has
// added as often as there were words.
func TestSQLiteJob(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 13
	}
	for at := 1; ; at += step {
		d := sqliteDatabase(t)
		_, err := d.reader.Exec("CREATE TABLE totals (word TEXT PRIMARY KEY, n INTEGER NOT NULL)")
		require.NoError(t, err)
		disk := vfs.NewMem()
		require.NoError(t, disk.MkdirAll("/w"))
		require.NoError(t, disk.SyncDir("/"))
		in := &vfs.Faults{}
		in.Fail(vfs.Rule{K: at, After: at%2 == 0, Dead: true})
		err = life(t, d, disk, 1, in)
		if in.Hits() > 0 {
			require.Error(t, err, "call %d", at)
		} else {
			require.NoError(t, err)
		}
		disk = disk.CrashClone(nil, 0)
		require.NoError(t, life(t, d, disk, 2, &vfs.Faults{}), "call %d", at)
		texts, err := d.texts(t.Context())
		require.NoError(t, err)
		require.ElementsMatch(t, strings.Fields(want), texts, "call %d", at)
		require.Equal(t, map[string]int{"a": 3, "b": 2, "c": 2, "d": 1}, totals(t, d.reader), "call %d", at)
		require.NoError(t, d.reader.Close())
		if in.Hits() == 0 {
			require.Greater(t, at, 50)
			return
		}
	}
}

func totals(t *testing.T, db *sql.DB) map[string]int {
	rows, err := db.Query("SELECT word, n FROM totals")
	require.NoError(t, err)
	defer rows.Close()
	out := map[string]int{}
	for rows.Next() {
		var word string
		var n int
		require.NoError(t, rows.Scan(&word, &n))
		out[word] = n
	}
	require.NoError(t, rows.Err())
	return out
}

// TestSQLiteBusyAtCommit: SQLite leaves a transaction open that a reader keeps from
// being committed; the same call succeeds when the reader is gone.
func TestSQLiteBusyAtCommit(t *testing.T) {
	path := t.TempDir() + "/db"
	open := func() *sql.DB {
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(0)&_pragma=journal_mode(DELETE)")
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	db, other := open(), open()
	_, err := db.Exec("CREATE TABLE texts (text TEXT NOT NULL)")
	require.NoError(t, err)
	_, err = db.Exec("INSERT INTO texts (text) VALUES ('a'), ('b')")
	require.NoError(t, err)
	u := sqlsink.New("out", db, sqlsink.SQLite)
	require.NoError(t, u.Fence(t.Context(), fence(1)))
	tx, err := u.Begin(t.Context(), 1)
	require.NoError(t, err)
	door := sqlsink.Exec(u, "INSERT INTO texts (text) VALUES (?)", func(s string) []any { return []any{s} })
	row, err := door.Encode(nil, "c")
	require.NoError(t, err)
	require.NoError(t, tx.Write(t.Context(), part(door.Target), func(yield func([]byte) error) error { return yield(row) }))

	reading, err := other.Query("SELECT text FROM texts")
	require.NoError(t, err)
	require.True(t, reading.Next())
	require.ErrorContains(t, tx.Commit(t.Context(), memory(1)), "end the transaction")
	require.ErrorContains(t, tx.Commit(t.Context(), memory(1)), "end the transaction", "and not: a transaction within a transaction")
	require.NoError(t, reading.Close())
	require.NoError(t, tx.Commit(t.Context(), memory(1)))
	var n int
	require.NoError(t, db.QueryRow("SELECT COUNT(*) FROM texts WHERE text = 'c'").Scan(&n))
	require.Equal(t, 1, n)
	// What is forbidden is not tried again.
	bad := sqlsink.Exec(u, "INSERT INTO texts (text) VALUES (?)", func(string) []any { return []any{nil} })
	row, err = bad.Encode(nil, "")
	require.NoError(t, err)
	tx, err = u.Begin(t.Context(), 2)
	require.NoError(t, err)
	require.NoError(t, tx.Write(t.Context(), part(bad.Target), func(yield func([]byte) error) error { return yield(row) }))
	err = tx.Commit(t.Context(), memory(2))
	require.ErrorContains(t, err, "NOT NULL")
	var p interface{ Permanent() bool }
	require.ErrorAs(t, err, &p)
	require.True(t, p.Permanent())
}
