package dstream_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// total adds the values up.
func total(values []int, state dstream.Option[int]) dstream.Option[int] {
	s := state.OrElse(0)
	for _, v := range values {
		s += v
	}
	return dstream.Some(s)
}

var us1Input = [][]string{{"a"}, {"a", "b"}, {"a", "b", "c"}, {"a", "b"}, {"a"}, {}}

func TestUpdateStateByKey(t *testing.T) { // US1
	for name, tc := range map[string]struct {
		opts []dstream.OpOption
		want [][]string
	}{
		"plain":      {nil, [][]string{{"a1"}, {"a2", "b1"}, {"a3", "b2", "c1"}, {"a4", "b3", "c1"}, {"a5", "b3", "c1"}, {"a5", "b3", "c1"}}},
		"partitions": {[]dstream.OpOption{dstream.NumPartitions(5)}, [][]string{{"a1"}, {"a2", "b1"}, {"a3", "b2", "c1"}, {"a4", "b3", "c1"}, {"a5", "b3", "c1"}, {"a5", "b3", "c1"}}},
		"initial state": {[]dstream.OpOption{dstream.InitialState(maps.All(map[string]int{"a": 1, "c": 2})), dstream.PartitionedBy(partitioner.Hash[string](3))},
			[][]string{{"a2", "c2"}, {"a3", "b1", "c2"}, {"a4", "b2", "c3"}, {"a5", "b3", "c3"}, {"a6", "b3", "c3"}, {"a6", "b3", "c3"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, sec, func(c ssc) error {
				dstream.Print(dstream.UpdateStateByKey(ones(c, us1Input), total, tc.opts...), 1, dstream.Name("o"))
				return nil
			}).start().tick(6)
			require.Equal(t, tc.want, pairs[string, int](r, "o"))
		})
	}
}

func TestUpdateStateByKeyTime(t *testing.T) { // US2
	r := newRig(t, sec, func(c ssc) error {
		s := dstream.UpdateStateByKeyTime(ones(c, us1Input), func(b time.Time, _ string, values []int, old dstream.Option[int64]) dstream.Option[int64] {
			sum := old.OrElse(0)
			if len(values) > 0 {
				sum += b.Sub(zero).Milliseconds()
			}
			return dstream.Some(sum)
		})
		dstream.Print(s, 1, dstream.Name("o"))
		return nil
	}).start().tick(6)
	require.Equal(t, [][]string{{"a1000"}, {"a3000", "b2000"}, {"a6000", "b5000", "c3000"}, {"a10000", "b9000", "c3000"},
		{"a15000", "b9000", "c3000"}, {"a15000", "b9000", "c3000"}}, pairs[string, int64](r, "o"))
}

// US3: a key goes after two batches without data; a batch without an RDD is an empty one.
func TestUpdateStateByKeyDrops(t *testing.T) {
	type st struct{ Sum, Idle int }
	r := newRig(t, sec, func(c ssc) error {
		s := dstream.UpdateStateByKeyErr(ones(c, [][]string{{"a", "b"}, {"a", "c", "a"}, {"c"}, {}, {}, {}}), func(_ time.Time, _ string, values []int, old dstream.Option[st]) (dstream.Option[st], error) {
			s := old.OrElse(st{})
			if s.Idle++; len(values) > 0 {
				s.Idle = 0
			}
			if s.Idle > 1 {
				return dstream.None[st](), nil
			}
			s.Sum += len(values)
			return dstream.Some(s), nil
		})
		dstream.Print(dstream.MapValues(s, func(s st) int { return s.Sum }), 1, dstream.Name("o"))
		return nil
	}).start().tick(6)
	require.Equal(t, [][]string{{"a1", "b1"}, {"a3", "b1", "c1"}, {"a3", "c2"}, {"c2"}, {}, {}}, pairs[string, int](r, "o"))
}

// CL2: Checkpoint has the stream remembered for two intervals.
func TestUpdateIsRemembered(t *testing.T) { // CL2
	var s *dstream.MapWithStateDStream[string, int, kv]
	newRig(t, sec, func(c ssc) error {
		s = dstream.UpdateStateByKey(ones(c, us1Input), total).Checkpoint(3 * sec)
		dstream.Print(s, 1)
		return nil
	}).start().tick(10)
	at := func(n int) time.Time { return zero.Add(time.Duration(n) * sec) }
	got, err := dstream.Slice(s, at(5), at(10))
	require.NoError(t, err)
	require.Len(t, got, 6)
	for _, b := range got {
		b.RDD.Release()
	}
	_, err = dstream.Slice(s, at(4), at(10))
	require.ErrorIs(t, err, dstream.ErrForgotten)
}

// F5: the longest duration counts, in whichever order they were set.
func TestRememberIsTheLongest(t *testing.T) {
	var last, first, twice *dstream.MapWithStateDStream[string, int, kv]
	newRig(t, sec, func(c ssc) error {
		in := ones(c, us1Input)
		last = dstream.UpdateStateByKey(in, total).Checkpoint(3 * sec)
		last.Remember(2 * sec)
		first = dstream.UpdateStateByKey(in, total)
		first.Remember(2 * sec)
		first.Checkpoint(3 * sec)
		twice = dstream.UpdateStateByKey(in, total)
		twice.Remember(6 * sec).Remember(sec)
		for _, s := range []*dstream.MapWithStateDStream[string, int, kv]{last, first, twice} {
			dstream.Print(s, 1)
		}
		return nil
	}).start().tick(10)
	at := func(n int) time.Time { return zero.Add(time.Duration(n) * sec) }
	for _, s := range []*dstream.MapWithStateDStream[string, int, kv]{last, first, twice} {
		got, err := dstream.Slice(s, at(5), at(10))
		require.NoError(t, err)
		require.Len(t, got, 6)
		for _, b := range got {
			b.RDD.Release()
		}
		_, err = dstream.Slice(s, at(4), at(10))
		require.ErrorIs(t, err, dstream.ErrForgotten)
	}
}

// updates has two of them, one with names, references and removals behind the other.
func updates(ssc *dstream.StreamingContext) error {
	sums := dstream.UpdateStateByKey(wordsOf(ssc), total, dstream.Name("sums"), dstream.NumPartitions(2),
		dstream.InitialState(maps.All(map[string]int{"a": 10, "q": 1})))
	lengths := dstream.MapPair(sums, func(p word) (int, string) { return p.Value % 5, p.Key })
	lists := dstream.UpdateStateByKeyTime(lengths, func(b time.Time, n int, values []string, old dstream.Option[[]string]) dstream.Option[[]string] {
		if len(values) == 0 && n%2 == 0 {
			return dstream.None[[]string]()
		}
		return dstream.Some(append(old.OrElse(nil), values...))
	}, dstream.Name("lists"), dstream.NumPartitions(3))
	dstream.Print(sums, 10, dstream.Name("sums out"))
	dstream.Print(lists, 10, dstream.Name("lists out"))
	return nil
}

// CP1: whenever runs stop or crash, outputs (their order too) and state are those of a run that
// nothing has happened to.
func TestUpdatesSurvive(t *testing.T) {
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 9))
		kit := milltest.New(t, time.Second, updates)
		kit.Checkpoint(dstream.SnapshotEvery(1+rng.IntN(5)), dstream.RetainSnapshots(1+rng.IntN(3)))
		in := milltest.Input[string](kit, "words")
		whole := milltest.New(t, time.Second, updates)
		same := milltest.Input[string](whole, "words")
		require.NoError(t, whole.Start())
		for range 15 {
			var batch []string
			for range rng.IntN(4) {
				batch = append(batch, []string{"a", "b", "c", "d", "e"}[rng.IntN(5)])
			}
			in.Batch(batch...)
			same.Batch(batch...)
			switch rng.IntN(4) {
			case 0:
				kit.Restart()
			case 1:
				kit.CrashKeeping(rng, 50)
			}
			kit.Tick(1)
			whole.AdvanceTime(kit.Now().Sub(whole.Now()))
			whole.Await()
		}
		require.Equal(t, milltest.Output[word](whole, "sums out"), milltest.Output[word](kit, "sums out"), "seed %d", seed)
		require.Equal(t, milltest.Output[dstream.Pair[int, []string]](whole, "lists out"), milltest.Output[dstream.Pair[int, []string]](kit, "lists out"), "seed %d", seed)
		require.Equal(t, milltest.StateTimes[string, int](whole, "sums"), milltest.StateTimes[string, int](kit, "sums"))
		require.Equal(t, milltest.State[int, []string](whole, "lists"), milltest.State[int, []string](kit, "lists"))
	}
}

// What is written to the checkpoint is what changed, although every key is called.
func TestUpdatesCostWhatChanges(t *testing.T) {
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.UpdateStateByKey(wordsOf(ssc), total, dstream.Name("sums")), 1, dstream.Name("out"))
		return nil
	})
	kit.Checkpoint()
	in := milltest.Input[string](kit, "words")
	var all []string
	for i := range 500 {
		all = append(all, fmt.Sprint("word", i))
	}
	in.Batches(all, []string{"word7"}, nil)
	kit.Tick(3)
	require.NoError(t, kit.Err())
	p := kit.Progress()
	require.EqualValues(t, 500, p[2].Operators[0].Calls)
	require.EqualValues(t, []int64{500, 1, 0}, []int64{p[0].Operators[0].Changed, p[1].Operators[0].Changed, p[2].Operators[0].Changed})
	require.Less(t, 10*p[1].Checkpoint.DeltaBytes, p[0].Checkpoint.DeltaBytes)
	require.Zero(t, p[2].Checkpoint.DeltaFiles)
	require.Len(t, milltest.Output[word](kit, "out")[2], 500)
}

// The number of partitions of an update can be changed as that of any operator.
func TestUpdatesAreRescaled(t *testing.T) {
	job := func(n int) dstream.Job {
		return func(ssc *dstream.StreamingContext) error {
			dstream.Print(dstream.UpdateStateByKey(wordsOf(ssc), total, dstream.Name("sums"), dstream.NumPartitions(n)), 1, dstream.Name("out"))
			return nil
		}
	}
	kit := milltest.New(t, time.Second, job(2))
	kit.Checkpoint()
	milltest.Input[string](kit, "words").Batches([]string{"a", "b", "c"}, []string{"a"}, []string{"d"})
	kit.Tick(2)
	kit.Restart()
	kit.Job(job(5), dstream.WithRescale())
	kit.Tick(1)
	require.NoError(t, kit.Err())
	require.Equal(t, map[string]int{"a": 2, "b": 1, "c": 1, "d": 1}, milltest.State[string, int](kit, "sums"))
}

func TestUpdateFaults(t *testing.T) {
	in := func(c ssc) *dstream.DStream[kv] { return ones(c, nil) }
	for want, job := range map[string]func(c ssc){
		"the function is nil": func(c ssc) { dstream.UpdateStateByKey[string, int, int](in(c), nil) },
		"the initial state is iter.Seq2[int,int]: want keys of type string and states of type int": func(c ssc) {
			dstream.UpdateStateByKey(in(c), total, dstream.InitialState(maps.All(map[int]int{})))
		},
		"the initial state is nil": func(c ssc) { dstream.UpdateStateByKey(in(c), total, dstream.InitialState[string, int](nil)) },
		"SameState is given a func(string, string) bool: want one for states of type int": func(c ssc) {
			dstream.UpdateStateByKey(in(c), total, dstream.SameState(func(a, b string) bool { return a == b }))
		},
		"the function given to Same is nil":        func(c ssc) { dstream.UpdateStateByKey(in(c), total, dstream.SameState[int](nil)) },
		"the partitioner is nil":                   func(c ssc) { dstream.UpdateStateByKey(in(c), total, dstream.PartitionedBy[string](nil)) },
		"is not for keys of type string":           func(c ssc) { dstream.UpdateStateByKey(in(c), total, dstream.PartitionedBy(partitioner.Hash[int](2))) },
		"the number of partitions is 0":            func(c ssc) { dstream.UpdateStateByKey(in(c), total, dstream.NumPartitions(0)) },
		"InitialState and SameState do not apply ": func(c ssc) { dstream.GroupByKey(in(c), dstream.InitialState(maps.All(map[string]int{}))) },
		"the stateful operator has no name, and a checkpoint is set: give it one by dstream.Name": func(c ssc) {
			dstream.UpdateStateByKey(in(c), total)
		},
	} {
		t.Run(want, func(t *testing.T) {
			c := dstream.New(sec, dstream.WithCheckpoint(t.TempDir()))
			job(c)
			dstream.Print(numbers(c), 1)
			require.ErrorContains(t, c.Validate(), want)
			require.ErrorContains(t, c.Validate(), "update_test.go:")
		})
	}
}

// An error of the function has the operator and the key.
func TestUpdateFails(t *testing.T) {
	boom := errors.New("boom")
	r := newRig(t, sec, func(c ssc) error {
		s := dstream.MapWithState(ones(c, us1Input), dstream.UpdateFunction(func(_ time.Time, k string, values []int, _ dstream.Option[int]) (dstream.Option[int], error) {
			if len(values) == 0 && k == "c" {
				return dstream.None[int](), boom
			}
			return dstream.Some(len(values)), nil
		}).Named("u"))
		dstream.Print(s, 1)
		return nil
	}).start().tick(3)
	err := r.tryTick()
	require.ErrorIs(t, err, boom)
	var re *rdd.RecordError
	require.ErrorAs(t, err, &re)
	require.Equal(t, "c", re.Key)
	require.Equal(t, "u", re.Operator)
}
