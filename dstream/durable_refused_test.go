package dstream_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/dstream"
)

// P1, report 11: a migration that fails or panics on a key refuses the start, naming
// operator and key; nothing has been written, and the program before it goes on.
func TestFailingMigrationLocksNobodyOut(t *testing.T) {
	for what, boom := range map[string]func() error{
		"error": func() error { return errors.New("boom") },
		"panic": func() error { panic("boom") },
	} {
		t.Run(what, func(t *testing.T) {
			kit, in := durableKit(t, counts(counter().NumPartitions(2)))
			in.Batches([]string{"a", "b"}, []string{"a", "c"})
			kit.Tick(2)
			kit.Restart()
			kit.Job(tallies, dstream.WithMigration("counts", codec.Migrate(func(n int) (tally, error) {
				if n == 2 {
					return tally{}, boom()
				}
				return tally{n}, nil
			})))
			refused(t, kit, `operator "counts"`, `key "a"`, "boom")
			kit.Job(counts(counter().NumPartitions(2)))
			in.Batch("a")
			kit.Tick(1)
			require.NoError(t, kit.Err())
			require.Equal(t, map[string]int{"a": 3, "b": 1, "c": 1}, stateNow(kit))
		})
	}
}

// tallies counts in another type of state.
func tallies(ssc *dstream.StreamingContext) error {
	count := func(w string, one dstream.Option[int], s *dstream.State[tally]) word {
		s.Update(tally{s.OrElse(tally{}).N + one.OrElse(0)})
		return word{}
	}
	dstream.Print(dstream.MapWithState(wordsOf(ssc), dstream.Function(count).Named("counts").NumPartitions(2)), 10, dstream.Name("out"))
	return nil
}
