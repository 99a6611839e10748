package sqlsink

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
)

// Dialect is the kind of the database.
type Dialect int

const (
	// SQLite is SQLite 3.24 or later. Give its driver a busy timeout, for other
	// writers of the file.
	SQLite Dialect = iota + 1
	// PostgreSQL is PostgreSQL 9.6 or later, and what speaks like it.
	PostgreSQL
)

// String names the dialect.
func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "SQLite"
	case PostgreSQL:
		return "PostgreSQL"
	}
	return fmt.Sprintf("dialect %d", int(d))
}

// own puts the dialect's placeholders in the place of "?" in the sink's own
// statements.
func (d Dialect) own(statement string) string {
	if d != PostgreSQL {
		return statement
	}
	var b strings.Builder
	n := 0
	for _, c := range statement {
		if c != '?' {
			b.WriteRune(c)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}

// quoted is a table's name as the sink's own statements have it: in quotes, so that a
// word of the language ("order", "group") is a name as any other. Without quotes PostgreSQL
// takes names in small letters, so that they are the same tables as ever; SQLite does not
// tell letters apart.
func (d Dialect) quoted(table string) string {
	if sabotage.On("sql-table-unquoted") {
		return table
	}
	if d == PostgreSQL {
		table = strings.ToLower(table)
	}
	return `"` + strings.ReplaceAll(table, ".", `"."`) + `"`
}

// create gives the statement that makes the table. Both take these types.
func create(table string) string {
	return "CREATE TABLE IF NOT EXISTS " + table + " (root TEXT NOT NULL, unit TEXT NOT NULL, " +
		"fence BIGINT NOT NULL, run TEXT NOT NULL, epoch BIGINT NOT NULL, term BIGINT NOT NULL, " +
		"output TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (root, unit))"
}

// limit is the statement that bounds how long the transaction may stand still, ""
// if there is none.
func (d Dialect) limit(idle time.Duration) string {
	if d != PostgreSQL || idle == 0 {
		return ""
	}
	return fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", idle.Milliseconds())
}

// permanent says that a statement will not go better another time: what it says is
// wrong, or what it would write is forbidden.
func (d Dialect) permanent(err error) bool {
	switch d {
	case PostgreSQL:
		var state interface{ SQLState() string }
		if !errors.As(err, &state) || len(state.SQLState()) != 5 {
			return false
		}
		switch state.SQLState()[:2] {
		case "22", "23", "42": // data, constraints, syntax and names
			return true
		}
	case SQLite:
		var code interface{ Code() int }
		if !errors.As(err, &code) {
			return false
		}
		switch code.Code() & 0xff {
		case 1, 18, 19, 20, 25: // error in the statement, too big, constraint, mismatch, range
			return true
		}
	}
	return false
}
