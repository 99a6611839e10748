package dstream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/rdd"
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

// Design 10, CP3: when a new program has made a window longer, or has added one of the same stream, all that
// follows is the same whether runs stop, or crash between two outputs, at every batch or never: a window
// begins with what its own log has, and that is kept for as long as it asks for it.
func TestWindowMadeLonger(t *testing.T) {
	type in = *dstream.DStream[kv]
	w := func(length, slide time.Duration, name string) func(s in) in {
		return func(s in) in { return dstream.Window(s, length, slide).Named(name) }
	}
	byKey := func(length, slide time.Duration) func(s in) in {
		return func(s in) in { return dstream.ReduceByKeyAndWindow(s, add, length, slide, dstream.Name("by key")) }
	}
	const begin, ticks = 4, 8
	short, year := w(2*sec, sec, "w"), 365*24*time.Hour
	for name, change := range map[string]struct {
		from, to []func(s in) in
		want     []string // of the last window, in the first epochs of the new program
	}{
		"longer": {from: []func(s in) in{short}, to: []func(s in) in{w(6*sec, sec, "w")},
			want: []string{"[2 3 4 5]", "[2 3 4 5 6]", "[2 3 4 5 6 7]", "[3 4 5 6 7 8]"}},
		"added": {from: []func(s in) in{short}, to: []func(s in) in{short, w(6*sec, sec, "added")},
			want: []string{"[5]", "[5 6]", "[5 6 7]", "[5 6 7 8]"}},
		"added before it": {from: []func(s in) in{short}, to: []func(s in) in{w(6*sec, sec, "added"), short},
			want: []string{"[4 5]", "[5 6]", "[6 7]", "[7 8]"}},
		"longer beside the short one": {from: []func(s in) in{short, w(3*sec, sec, "v")}, to: []func(s in) in{short, w(6*sec, 2*sec, "v")}},
		"all there was":               {from: []func(s in) in{short}, to: []func(s in) in{w(200*year, sec, "w")}},
		"slide":                       {from: []func(s in) in{w(4*sec, sec, "w")}, to: []func(s in) in{w(4*sec, 4*sec, "w")}},
		"shorter":                     {from: []func(s in) in{w(6*sec, sec, "w")}, to: []func(s in) in{short}},
		"by key": {from: []func(s in) in{byKey(2*sec, sec)}, to: []func(s in) in{byKey(5*sec, sec)},
			want: []string{"[14]", "[20]", "[25]", "[30]"}},
	} {
		t.Run(name, func(t *testing.T) {
			// run gives what each window has in each epoch; every attempt must have the same.
			run := func(between func(kit *milltest.Kit)) map[string]string {
				saw := map[string]string{}
				job := func(windows []func(s in) in) dstream.Job {
					return func(c ssc) error {
						s := dstream.QueueNamed[kv](c, "in", 1)
						for i, window := range windows {
							dstream.ForeachRDD(window(s), func(ctx context.Context, b dstream.Batch, r *rdd.RDD[kv]) error {
								rows, err := rdd.Collect(ctx, rdd.Values(r))
								if err != nil {
									return err
								}
								at, got := fmt.Sprintf("epoch %d window %d", b.Epoch, i), fmt.Sprint(rows)
								if before, again := saw[at]; again {
									require.Equal(t, before, got, "%s: what is redone is what was done", at)
								}
								saw[at] = got
								return nil
							}, dstream.Name(fmt.Sprint("out ", i)))
						}
						// Due in every batch, after those of the windows.
						dstream.Print(s, 0, dstream.Name("last"))
						return nil
					}
				}
				kit := milltest.New(t, sec, job(change.from))
				kit.Checkpoint(dstream.SnapshotEvery(2))
				input := milltest.Input[kv](kit, "in")
				for i := range begin + ticks {
					input.Batch(kv{Key: "k", Value: i + 1})
				}
				kit.Tick(begin)
				kit.Restart()
				kit.Job(job(change.to))
				for range ticks {
					between(kit)
				}
				return saw
			}
			calm := run(func(kit *milltest.Kit) {
				kit.Tick(1)
				require.NoError(t, kit.Err())
			})
			for i, want := range change.want {
				require.Equal(t, want, calm[fmt.Sprintf("epoch %d window %d", begin+1+i, len(change.to)-1)])
			}
			stops := run(func(kit *milltest.Kit) {
				kit.Restart()
				kit.Tick(1)
				require.NoError(t, kit.Err())
			})
			require.Equal(t, calm, stops)
			errLast := errors.New("last")
			crashes := run(func(kit *milltest.Kit) {
				kit.FailOutput("last", 1, errLast)
				kit.Tick(1)
				require.ErrorIs(t, kit.Err(), errLast)
				kit.Crash()
				require.NoError(t, kit.Start())
				kit.Await()
				require.NoError(t, kit.Err())
			})
			require.Equal(t, calm, crashes)
		})
	}
}

// Report 30, CP3: the dead letters of an epoch with windows are the same when it is redone, in which the rows
// that earlier batches had read come out of the checkpoint: also whose letters they are, and their order.
func TestLettersOfWindowsAreRedone(t *testing.T) {
	type words = *dstream.DStream[string]
	length, slide := 3*sec, sec
	pairs := func(s words) *dstream.DStream[dstream.Pair[string, string]] {
		return dstream.MapPair(s, func(w string) (string, string) { return w, w })
	}
	joined := func(a, b string) string { return a + b }
	firsts := func(s *dstream.DStream[dstream.Pair[string, string]]) words {
		return dstream.Map(s, func(p dstream.Pair[string, string]) string { return p.Key })
	}
	for name, op := range map[string]func(s, other words) words{
		"Window": func(s, other words) words { return dstream.Window(s, length, slide).Named("w") },
		"Window kept": func(s, other words) words {
			return dstream.Window(s, length, slide).Named("w").Cache()
		},
		"of two sources": func(s, other words) words {
			return dstream.Union(dstream.Window(s, length, slide).Named("w"), dstream.Window(other, length, slide).Named("v"))
		},
		"ReduceByKeyAndWindow": func(s, other words) words {
			return firsts(dstream.ReduceByKeyAndWindow(pairs(s), joined, length, slide, dstream.Name("w")))
		},
		"inverse": func(s, other words) words {
			return firsts(dstream.ReduceByKeyAndWindowInverse(pairs(s), joined, func(a, b string) string { return a[len(b):] },
				func(_, v string) bool { return v != "" }, length, slide, dstream.Name("w")))
		},
		"group": func(s, other words) words {
			g := dstream.GroupByKey(dstream.MapPair(dstream.Window(s, length, slide).Named("w"), func(w string) (string, string) { return w, w }))
			return dstream.Map(g, func(p dstream.Pair[string, []string]) string { return p.Value[len(p.Value)-1] })
		},
		"state": func(s, other words) words {
			w := pairs(dstream.Map(dstream.Window(s, length, slide).Named("w"), func(s string) string { return s }))
			return dstream.MapWithState(w, dstream.FunctionErr(strict).Named("state")).DStream
		},
	} {
		t.Run(name, func(t *testing.T) {
			// run gives the letters of each epoch, by output.
			run := func(crash bool) (all []map[string][]string) {
				var now map[string][]string // of the attempt under way
				kit := milltest.New(t, sec, func(c ssc) error {
					s, other := dstream.QueueNamed[string](c, "in", 2), dstream.QueueNamed[string](c, "other", 1)
					dstream.Print(dstream.Map(op(s, other), must).Named("op"), 0, dstream.Name("out"))
					dstream.Print(dstream.Map(other, must).Named("others"), 0, dstream.Name("others out"))
					for name, of := range map[string]words{"letters": s, "letters of other": other} {
						dstream.ForeachDeadLetter(of, func(_ context.Context, _ dstream.Batch, l letter) error {
							now[name] = append(now[name], told([]letter{l})...)
							return nil
						}, dstream.Name(name))
					}
					dstream.ForeachDeadLetter(s, noLetter, dstream.Name("last"))
					return nil
				})
				kit.Checkpoint(dstream.SnapshotEvery(2))
				milltest.Input[string](kit, "in").Partitions(2).Batches([]string{"bad1", "a", "bad2", "b"}, []string{"c", "bad3", "bad2"},
					[]string{"bad1"}, nil, []string{"bad4", "bad2", "d"}, nil, nil)
				milltest.Input[string](kit, "other").Batches([]string{"bad5"}, []string{"bad6", "e"}, []string{"bad5", "bad1"}, nil, []string{"f"}, nil, nil)
				for epoch := range 7 {
					now = map[string][]string{}
					if crash {
						errLast := errors.New("last")
						kit.FailOutput("last", 1, errLast)
						kit.Tick(1)
						require.ErrorIs(t, kit.Err(), errLast)
						first := now
						kit.Crash()
						now = map[string][]string{}
						require.NoError(t, kit.Start())
						kit.Await()
						require.Equal(t, first, now, "epoch %d: what is redone is what was done", epoch+1)
					} else {
						kit.Tick(1)
					}
					require.NoError(t, kit.Err())
					all = append(all, now)
				}
				return all
			}
			calm := run(false)
			require.Contains(t, fmt.Sprint(calm[1]["letters"]), "/@0 - ", "some are of an earlier batch")
			require.Equal(t, calm, run(true))
		})
	}
}

// Report 31, CP3: a window by key that was not told in how many partitions to lie is redone in the order of the
// first attempt on a machine with other cores, and over batches that machines with yet others have laid out.
func TestWindowRedoneOnOtherCores(t *testing.T) {
	errLast := errors.New("last")
	saw := map[uint64][]string{}
	job := func(c ssc) error {
		w := dstream.ReduceByKeyAndWindow(dstream.QueueNamed[kv](c, "in", 1), add, 3*sec, sec, dstream.Name("w"))
		dstream.ForeachRDD(w, func(ctx context.Context, b dstream.Batch, r *rdd.RDD[kv]) error {
			rows, err := rdd.Collect(ctx, r)
			saw[b.Epoch] = append(saw[b.Epoch], fmt.Sprint(rows))
			return err
		}, dstream.Name("out"))
		dstream.Print(w, 0, dstream.Name("last"))
		return nil
	}
	kit := milltest.New(t, sec, job, dstream.WithParallelism(4))
	kit.Checkpoint(dstream.SnapshotEvery(2))
	in := milltest.Input[kv](kit, "in")
	for epoch := range uint64(8) {
		var rows []kv
		for i := range 20 {
			rows = append(rows, kv{Key: fmt.Sprint("key ", (i+int(epoch)*7)%30), Value: i})
		}
		in.Batch(rows...)
		kit.FailOutput("last", 1, errLast)
		kit.Tick(1)
		require.ErrorIs(t, kit.Err(), errLast)
		kit.Crash()
		kit.Job(job, dstream.WithParallelism([]int{3, 5, 4, 2}[epoch%4]))
		require.NoError(t, kit.Start())
		kit.Await()
		require.NoError(t, kit.Err())
		got := saw[epoch+1]
		require.Len(t, got, 2)
		require.Equal(t, got[0], got[1], "epoch %d: what is redone is what was done", epoch+1)
	}
}
