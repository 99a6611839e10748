// Package sqlsink is a sink that writes each epoch to a database exactly once,
// through database/sql. It brings no driver: the user opens the *sql.DB.
//
//	out := sqlsink.New("totals", db, sqlsink.PostgreSQL)
//	put := sqlsink.Exec(out, "INSERT INTO totals (word, n) VALUES ($1, $2) ON CONFLICT (word) DO UPDATE SET n = excluded.n",
//		func(c dstream.Pair[string, int]) []any { return []any{c.Key, c.Value} })
//	dstream.Output(counts, "totals", put)
//
// The main types are [Unit], what is committed as one, and [Dialect]; [Exec] makes
// the typed doors of a unit, one a statement.
//
// # What holds
//
// An epoch is one transaction of the database: first the unit's memory is moved
// from an older epoch to this one, by an update that changes one row only if no
// newer run has fenced, then each row's statement runs, then it is committed. So
// the data and the memory are there together or not at all, and a run that was
// fenced can commit nothing, whenever it wakes up: the update finds no row. The
// update also takes the row's lock, so a newer run's fence waits for a commit that
// is under way, and after it the memory is what no older run can change.
//
// The memory lies in a table of the sink's own ([DefaultTable], see [Table]), one row
// for each root id and unit, made by the first fence if it is not there:
//
//	root, unit     the key
//	fence, run     the newest run that has opened the unit: its term and its id
//	epoch, term,   the memory: the last epoch, the term of the run that wrote it,
//	output, digest and its sums; epoch 0 is none
//
// A fence changes the first pair alone. Rows of a part run in their order, parts by
// the name of their output and their number.
//
// # What becomes of a lost answer
//
// Commit can be called again whatever failed, a connection in its midst too: the
// update waits for what the lost transaction still does on the server, then either
// finds the epoch not there, and everything is written, or finds the very memory
// that it was to write, and all is done. So ErrUnknown is never needed.
//
// # Limits
//
// Rows are kept in memory, encoded, until the commit, and each is one execution of
// its statement, so that the transaction lasts no longer than it must. A process
// that is stopped but not dead in the midst of a commit keeps its locks: PostgreSQL
// ends such a transaction after [IdleTimeout], SQLite has nothing of the kind, and
// the newer run waits as long as its driver's busy timeout says, then fails.
//
// Statements are in the database's own words, with its own placeholders. What they
// do beside the database (functions with effects, other connections) is not
// undone. Nobody deletes rows of old roots from the table.
package sqlsink
