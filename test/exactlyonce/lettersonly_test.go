package exactlyonce

import (
	"fmt"
	"io/fs"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// Report 30, dead letter: a function that nothing reads but exactly-once sinks runs for them
// first, so its bad records are letters of the same batch, and count for the limit.
func TestLettersOfWhatOnlySinksRead(t *testing.T) {
	for name, first := range map[string]bool{"letters before the output": true, "letters after the output": false} {
		t.Run(name, func(t *testing.T) {
			store := vfs.NewObjects()
			rows, err := parseOnly(t, store, first)
			require.NoError(t, err)
			require.Equal(t, []string{"1 dead 2 by small", "1 dead two", "1 numbers 1", "2 dead six", "2 numbers 0"}, rows)
		})
	}
	rows, err := parseOnly(t, vfs.NewObjects(), true, dstream.WithMaxBadRecords(1, 0))
	require.ErrorIs(t, err, dstream.ErrBadRecords)
	require.Empty(t, rows)
}

// parseOnly reads texts as small numbers: first by a function of the source's own chain,
// then by one behind a state. It gives what readers of the sink see.
func parseOnly(t *testing.T, store vfs.Store, first bool, opts ...dstream.ContextOption) (rows []string, err error) {
	u := sink.NewFiles("u", store)
	job := func(ssc *dstream.StreamingContext) error {
		texts := dstream.QueueNamed(ssc, "texts", 2, []string{"1", "two", "2"}, []string{"six", "0"})
		letters := func() {
			dstream.DeadLetters(texts, "dead", sink.Lines(u, func(dst []byte, l dstream.Letter[string]) ([]byte, error) {
				if l.Operator == "parse" {
					return append(dst, l.Record.OrElse("?")...), nil
				}
				return fmt.Appendf(dst, "%v by %s", l.Row, l.Operator), nil
			}))
		}
		if first {
			letters()
		}
		numbers := dstream.MapErr(texts, strconv.Atoi).Named("parse")
		seen := dstream.MapWithState(dstream.KeyBy(numbers, func(n int) int { return n }), dstream.Function(
			func(n int, _ dstream.Option[int], s *dstream.State[int]) int { s.Update(n); return n }).Named("seen").NumPartitions(1))
		small := dstream.MapErr(seen, func(n int) (int, error) {
			if n > 1 {
				return 0, fmt.Errorf("%d is too large", n)
			}
			return n, nil
		}).Named("small")
		dstream.Output(small, "numbers", sink.Lines(u, func(dst []byte, n int) ([]byte, error) { return strconv.AppendInt(dst, int64(n), 10), nil }))
		if !first {
			letters()
		}
		return nil
	}
	err = dstream.Run(t.Context(), 10*time.Millisecond, job, append(opts, dstream.WithStopWhenDone(), dstream.WithCheckpointStore(store))...)
	f, none := sink.OpenFiles(t.Context(), store, "u", "")
	if none != nil {
		require.ErrorIs(t, none, fs.ErrNotExist)
		return nil, err
	}
	for row, bad := range f.Rows(t.Context()) {
		require.NoError(t, bad)
		rows = append(rows, fmt.Sprintf("%d %s %s", row.Epoch, row.Output, row.Data))
	}
	return rows, err
}
