package dstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// What becomes of a record: the operator's policy before the context's, before that
// which a source has by its letters.
func TestWhichPolicyHolds(t *testing.T) {
	fail, skip, dead := dstream.Fail, dstream.Skip, dstream.DeadLetter
	const none = dstream.RecordPolicy(-1)
	for name, tc := range map[string]struct {
		context, operator dstream.RecordPolicy
		letters           bool
		want              dstream.RecordPolicy
	}{
		"default":                             {none, none, false, fail},
		"letters":                             {none, none, true, dead},
		"context":                             {skip, none, false, skip},
		"context, letters of another one":     {dead, none, true, dead},
		"operator alone":                      {none, skip, false, skip},
		"operator before context":             {skip, fail, false, fail},
		"operator before context, other way":  {fail, skip, false, skip},
		"operator before letters":             {none, fail, true, fail},
		"operator before letters, skips":      {none, skip, true, skip},
		"operator has letters, context skips": {skip, dead, true, dead},
		"operator has letters, context fails": {fail, dead, true, dead},
	} {
		t.Run(name, func(t *testing.T) {
			var opts []dstream.ContextOption
			if tc.context != none {
				opts = append(opts, dstream.WithRecordPolicy(tc.context))
			}
			r := newRig(t, time.Second, func(c ssc) error {
				in := dstream.From(c, "in", newScript(1, []string{"a", "bad", "b"}))
				op := dstream.Map(in, must).Named("op")
				if tc.operator != none {
					op.OnError(tc.operator)
				}
				dstream.Print(op, 10, dstream.Name("out"))
				if tc.letters {
					dstream.ForeachDeadLetter(in, noLetter, dstream.Name("dead"))
				}
				return nil
			}, opts...).start()
			if tc.want == fail {
				require.Error(t, r.tryTick())
				require.ErrorIs(t, r.end(), errBad)
				return
			}
			r.tick(1)
			require.Equal(t, [][]string{{"a", "b"}}, out[string](r, "out"))
			p, letters, skipped := r.last(), int64(0), int64(0)
			if tc.want == dead {
				letters = 1
				require.Len(t, out[letter](r, "dead")[0], 1)
			} else {
				skipped = 1
			}
			require.Equal(t, []int64{letters, letters, skipped, skipped},
				[]int64{p.DeadLetters, p.Sources[0].DeadLetters, p.SkippedRecords, p.Sources[0].Skipped})
		})
	}
}

// Operators of one chain keep their own policies: each record is judged by the operator
// that refuses it.
func TestPoliciesOfOneChain(t *testing.T) {
	job := func(last string) dstream.Job {
		return func(c ssc) error {
			in := dstream.From(c, "in", newScript(1, []string{"skip", "letter", "a", last}))
			only := func(what string, p dstream.RecordPolicy) func(*dstream.DStream[string]) *dstream.DStream[string] {
				return func(in *dstream.DStream[string]) *dstream.DStream[string] {
					return dstream.MapErr(in, func(s string) (string, error) {
						if s == what {
							return "", errBad
						}
						return s, nil
					}).Named(what + "s").OnError(p)
				}
			}
			chain := only("fail", dstream.Fail)(only("letter", dstream.DeadLetter)(only("skip", dstream.Skip)(in)))
			dstream.Print(chain, 10, dstream.Name("out"))
			dstream.ForeachDeadLetter(in, noLetter, dstream.Name("dead"))
			return nil
		}
	}
	r := newRig(t, time.Second, job("b")).start().tick(1)
	require.Equal(t, [][]string{{"a", "b"}}, out[string](r, "out"))
	require.Equal(t, []string{"in/0@1 letter letters: bad one"}, told(out[letter](r, "dead")[0]))
	require.EqualValues(t, 1, r.last().SkippedRecords)
	text, err := json.Marshal(r.last())
	require.NoError(t, err)
	require.Contains(t, string(text), `"skippedRecords":1,"deadLetters":1,`)
	require.Contains(t, string(text), `"metrics":{"deadLetters":1,"skipped":1}`)

	r = newRig(t, time.Second, job("fail")).start()
	require.Error(t, r.tryTick())
	var at *rdd.RecordError
	require.ErrorAs(t, r.end(), &at)
	require.Equal(t, []any{"fails", int64(3)}, []any{at.Operator, at.Offset})
}

// Stateful operators have policies of their own, too.
func TestPolicyOfStatefulOperator(t *testing.T) {
	for name, op := range map[string]func(in *dstream.DStream[dstream.Pair[string, string]]){
		"MapWithState": func(in *dstream.DStream[dstream.Pair[string, string]]) {
			dstream.Print(dstream.MapWithState(in, dstream.FunctionErr(strict).Named("op")).OnError(dstream.Skip), 1)
		},
		"UpdateStateByKey": func(in *dstream.DStream[dstream.Pair[string, string]]) {
			dstream.Print(dstream.UpdateStateByKey(in, func(vs []string, _ dstream.Option[int]) dstream.Option[int] {
				for _, v := range vs {
					must(v)
				}
				return dstream.Some(1)
			}, dstream.Name("op")).OnError(dstream.Skip), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, time.Second, func(c ssc) error {
				op(dstream.MapPair(dstream.From(c, "in", newScript(1, []string{"a", "bad", "boom"})), func(s string) (string, string) { return s, s }))
				return nil
			}).start().tick(1)
			require.Equal(t, map[string]int{"a": 1}, stateOf[string, int](r, "op"))
			require.EqualValues(t, 2, r.last().SkippedRecords)
		})
	}
}

// Policies that cannot be followed are faults of the start, with their lines.
func TestRecordPolicyFaults(t *testing.T) {
	in := func(c ssc) *dstream.DStream[string] { return dstream.From(c, "in", newScript[string](1)) }
	text := func(dst []byte, l letter) ([]byte, error) { return append(dst, l.Reason()...), nil }
	for name, tc := range map[string]struct {
		opts   []dstream.ContextOption
		job    func(c ssc)
		want   string
		faults int // if not 1
	}{
		"policy":  {opts: []dstream.ContextOption{dstream.WithRecordPolicy(3)}, want: "RecordPolicy(3) is no record policy"},
		"max":     {opts: []dstream.ContextOption{dstream.WithMaxBadRecords(-1, 0)}, want: "at most -1 bad records"},
		"share":   {opts: []dstream.ContextOption{dstream.WithMaxBadRecords(1, 1.5)}, want: "a share of 1.5"},
		"on wide": {job: func(c ssc) { dstream.Glom(in(c)).OnError(dstream.Skip) }, want: "a Glom has no record policy of its own"},
		"on none": {job: func(c ssc) { dstream.Map(in(c), must).OnError(9) }, want: "RecordPolicy(9)"},
		"no place": {opts: []dstream.ContextOption{dstream.WithRecordPolicy(dstream.DeadLetter)}, job: func(c ssc) { in(c) },
			want: `WithRecordPolicy sends bad records of source "in" to dead letters, and it has no place for them`, faults: 2},
		"no place for one": {job: func(c ssc) { dstream.Map(in(c), must).Named("op").OnError(dstream.DeadLetter) },
			want: `operator "op" sends bad records of source "in" to dead letters`},
		"no letters": {opts: []dstream.ContextOption{dstream.WithRecordPolicy(dstream.Skip)}, job: func(c ssc) { dstream.ForeachDeadLetter(in(c), noLetter) },
			want: "no record comes here: WithRecordPolicy(Skip) holds"},
		"one name": {job: func(c ssc) {
			s := in(c)
			dstream.Map(s, must).Named("op").OnError(dstream.Skip)
			dstream.Map(s, must).Named("op")
		}, want: `2 streams are named "op"`},
		"no source":   {job: func(c ssc) { dstream.ForeachDeadLetter(dstream.Map(in(c), must), noLetter) }, want: "is not that of a source"},
		"no function": {job: func(c ssc) { dstream.ForeachDeadLetter[string](in(c), nil) }, want: "the function is nil"},
		"no sink":     {job: func(c ssc) { dstream.DeadLetters(in(c), "dead", sink.Sink[letter]{}) }, want: "the sink has no unit"},
		"no checkpoint": {job: func(c ssc) {
			dstream.DeadLetters(in(c), "dead", sink.Sink[letter]{Unit: sink.NewFiles("out", vfs.NewObjects()), Encode: text})
		}, want: "or use ForeachRDD (for dead letters ForeachDeadLetter)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := dstream.NewStreamingContext(time.Second, tc.opts...)
			dstream.Print(dstream.QueueStream[int](c), 1)
			if tc.job != nil {
				tc.job(c)
			}
			err := c.Validate()
			require.ErrorContains(t, err, tc.want)
			var all *dstream.ValidationError
			require.ErrorAs(t, err, &all)
			require.Len(t, all.Faults, max(tc.faults, 1))
			require.Contains(t, all.Faults[0].Caller, "recordpolicy_test.go:")
		})
	}
	require.Equal(t, []string{"Fail", "Skip", "DeadLetter", "RecordPolicy(5)"},
		[]string{dstream.Fail.String(), dstream.Skip.String(), dstream.DeadLetter.String(), dstream.RecordPolicy(5).String()})
	only := dstream.NewStreamingContext(time.Second)
	dstream.ForeachDeadLetter(in(only), noLetter)
	require.ErrorIs(t, only.Validate(), dstream.ErrNoOutputs)
}

// Too many bad records fail the batch: more than the number and more than the share.
func TestMaxBadRecords(t *testing.T) {
	for name, tc := range map[string]struct {
		n     int64
		share float64
		good  int
		bad   int
		fails bool
	}{
		"at the number":       {2, 0, 5, 2, false},
		"above the number":    {2, 0, 5, 3, true},
		"none allowed":        {0, 0, 5, 1, true},
		"none came":           {0, 0, 5, 0, false},
		"below the share":     {1, 0.5, 5, 3, false},
		"at the share":        {1, 0.5, 3, 3, false},
		"above the share":     {1, 0.5, 2, 3, true},
		"share, not number":   {3, 0.1, 0, 3, false},
		"every one, no limit": {1, 1, 0, 9, false},
	} {
		for _, letters := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var batch []string
				for range tc.good {
					batch = append(batch, "a")
				}
				for range tc.bad {
					batch = append(batch, "bad")
				}
				opts := []dstream.ContextOption{dstream.WithMaxBadRecords(tc.n, tc.share)}
				if !letters {
					opts = append(opts, dstream.WithRecordPolicy(dstream.Skip))
				}
				given := 0
				r := newRig(t, time.Second, func(c ssc) error {
					in := dstream.From(c, "in", newScript(2, batch)) // so that no task sees all of them
					dstream.Print(dstream.MapErr(in, func(s string) (string, error) { return s, refuse(s) }).Named("op"), 10, dstream.Name("out"))
					if letters {
						dstream.ForeachDeadLetter(in, func(context.Context, dstream.Batch, letter) error { given++; return nil })
					}
					return nil
				}, opts...).start()
				if !tc.fails {
					r.tick(1)
					require.EqualValues(t, tc.bad, r.last().SkippedRecords+r.last().DeadLetters)
					return
				}
				require.Error(t, r.tryTick())
				var e *dstream.BadRecordsError
				err := r.end()
				require.ErrorAs(t, err, &e)
				require.ErrorIs(t, err, dstream.ErrBadRecords)
				require.ErrorIs(t, err, errBad)
				require.Greater(t, e.Bad, tc.n)
				require.Zero(t, given, "no letter of a batch that fails for this")
				require.Zero(t, r.h.Engine().Epoch())
			})
		}
	}
	e := &dstream.BadRecordsError{Bad: 3, Records: 9, Max: 2, Share: 0.25, Err: errors.New("x")}
	require.EqualError(t, e, "too many bad records: 3 of 9, and WithMaxBadRecords allows 2 and a share of 0.25; one of them: x")
}
