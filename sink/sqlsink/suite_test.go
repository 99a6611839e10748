package sqlsink

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/sinktest"
	"github.com/statemill/statemill/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// closing ends the client's connections with the unit, as the end of a process does.
type closing struct {
	*Unit
	db *sql.DB
}

func (c *closing) Close() error {
	c.db.SetMaxIdleConns(-1) // those that there are
	c.db.SetMaxIdleConns(2)
	return c.Unit.Close()
}

func fakeCase(t *testing.T) sinktest.Case {
	s := newServer()
	return sinktest.Case{
		Open: func(in vfs.Injector) sink.Unit {
			db := s.open(in)
			t.Cleanup(func() { _ = db.Close() }) // some are only asked for their name
			return &closing{New("out", db, PostgreSQL), db}
		},
		Target:     "put by $1",
		Encode:     Exec(nil, "", func(text string) []any { return []any{text} }).Encode,
		Read:       func(context.Context) ([]string, error) { return s.seen(), nil },
		KnowsTerms: true,
	}
}

// TestSuite: the unit keeps the contract of sinks, dead, frozen and deafened at every
// request to the database, in the midst of its transactions too.
func TestSuite(t *testing.T) { sinktest.Run(t, fakeCase) }

// The suite notices what the rules are for.
func TestBrokenUnitsAreCaught(t *testing.T) {
	broken := func(t *testing.T) sinktest.Case {
		c := fakeCase(t)
		s := newServer()
		c.Open = func(in vfs.Injector) sink.Unit {
			db := s.open(in)
			t.Cleanup(func() { _ = db.Close() })
			return &forgetful{&closing{New("out", db, PostgreSQL), db}}
		}
		c.Read = func(context.Context) ([]string, error) { return s.seen(), nil }
		return c
	}
	require.NotEmpty(t, sinktest.Failing(t, broken, "MemoryIsWhatWasCommitted"))
}

// forgetful remembers nothing.
type forgetful struct{ *closing }

func (f *forgetful) Memory(context.Context) (sink.Memory, bool, error) {
	return sink.Memory{}, false, nil
}
