// Package sqltest runs the acceptance suite of sinks, and whole jobs, on
// sink/sqlsink over real drivers: SQLite in the process, and the PostgreSQL that
// STATEMILL_POSTGRES names (a connection string; make test-sql starts one), without
// which those tests are skipped. It has tests only, and is a module of its own, so
// that no user of the library gets the drivers.
package sqltest
