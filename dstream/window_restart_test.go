package dstream_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
)

// Report 30, R3: a window that ended while the job was down holds batches of the earlier run alone. What
// runs behind it is retried, leaves bad records out and counts as in a run that was never down.
func TestWindowOfDownTime(t *testing.T) {
	errBadValue := errors.New("thirteen")
	type in = *dstream.DStream[kv]
	windows := map[string]func(s in) in{
		"Window": func(s in) in { return dstream.Window(s, 2*sec, 2*sec).Named("w") },
		"ReduceByKeyAndWindow": func(s in) in {
			return dstream.ReduceByKeyAndWindow(s, add, 2*sec, 2*sec, dstream.Name("w"))
		},
	}
	for name, window := range windows {
		for _, skip := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " skip ", skip), func(t *testing.T) {
				var seen [2]string
				for down := range seen {
					fails := 0
					job := func(c ssc) error {
						calls := c.Counter("calls")
						w := window(dstream.QueueNamed[kv](c, "in", 1))
						checked := dstream.MapErr(w, func(x kv) (kv, error) {
							calls.Add(1)
							if x.Value != 13 {
								return x, nil
							}
							if fails++; skip || fails == 1 {
								return x, errBadValue
							}
							return x, nil
						}).Named("check")
						dstream.Print(checked, 0, dstream.Name("out"))
						return nil
					}
					opts := []dstream.ContextOption{dstream.WithTaskRetries(2)}
					if skip {
						opts = append(opts, dstream.WithRecordPolicy(dstream.Skip))
					}
					kit := milltest.New(t, sec, job, opts...)
					kit.Checkpoint()
					milltest.Input[kv](kit, "in").Batches([]kv{{Key: "a", Value: 1}}, nil,
						[]kv{{Key: "b", Value: 13}, {Key: "c", Value: 2}}, []kv{{Key: "a", Value: 1}}, nil)
					kit.Tick(3)
					now := kit.Now()
					if down == 1 {
						kit.Restart()
						kit.StartAt(now)
						require.NoError(t, kit.Start())
					}
					kit.AdvanceTime(2 * sec) // the window that ended at 4 s is given at 5 s
					kit.Await()
					require.NoError(t, kit.Err())
					p := kit.Progress()
					last := p[len(p)-1]
					rows := milltest.Output[kv](kit, "out")
					seen[down] = fmt.Sprint(rows[len(rows)-1], " skipped ", last.SkippedRecords, " counters ", last.Counters)
				}
				require.Equal(t, seen[0], seen[1])
			})
		}
	}
}
