package reports

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// decoding is a job that decodes texts to numbers and keeps their sum by
// parity; the texts "panic" and "fail" make the state's function fail.
func decoding(t *testing.T, opts ...dstream.ContextOption) (*milltest.Kit, *milltest.In[string]) {
	t.Helper()
	kit := milltest.New(t, time.Second, decodingJob, opts...)
	return kit, milltest.Input[string](kit, "texts")
}

func decodingJob(ssc *dstream.StreamingContext) error {
	in := dstream.From(ssc, "texts", source.NewQueue[string](1))
	numbers := dstream.MapErr(in, func(text string) (pair, error) {
		switch text {
		case "panic", "fail":
			return dstream.KV(text, 0), nil
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return pair{}, fmt.Errorf("codec decimal: %w", err)
		}
		return dstream.KV("n", n), nil
	})
	sums := dstream.MapWithState(numbers, dstream.FunctionErr(
		func(_ time.Time, key string, v dstream.Option[int], s *dstream.State[int]) (int, bool, error) {
			n, _ := v.Get()
			s.Update(s.OrElse(0) + n)
			switch key {
			case "panic":
				panic("the function's own")
			case "fail":
				return 0, false, errOwn
			}
			return n, true, nil
		}).Named("sums").NumPartitions(2))
	dstream.Print(sums, 10, dstream.Name("out"))
	return nil
}

var errOwn = errors.New("the function's own")

// report 30, fail: the error says where, and nothing of the batch is kept.
func TestBadRecordFails(t *testing.T) {
	t.Parallel()
	kit, in := decoding(t)
	in.Batch("1").Batch("2", "garbage", "3")
	kit.Tick(2)
	err := kit.Err()
	require.ErrorIs(t, err, strconv.ErrSyntax)
	var at *rdd.RecordError
	require.ErrorAs(t, err, &at)
	assert.Equal(t, []any{"texts", "0", int64(2)}, []any{at.Stream, at.Partition, at.Offset})
	for _, part := range []string{"texts/0 offset 2", "codec decimal"} {
		assert.ErrorContains(t, err, part)
	}
	assert.Len(t, kit.Progress(), 1, "the batch is not committed")
	assert.Equal(t, map[string]int{"n": 1}, milltest.State[string, int](kit, "sums"))
	assert.Equal(t, [][]int{{1}}, milltest.Output[int](kit, "out"))
}

// report 30, skip: two outputs, one skipped, and the position has moved on.
func TestBadRecordIsSkipped(t *testing.T) {
	t.Parallel()
	kit, in := decoding(t, dstream.WithRecordPolicy(dstream.Skip))
	in.Batch("1", "garbage", "2").Batch("3")
	kit.Tick(2)
	require.NoError(t, kit.Err())
	assert.Equal(t, [][]int{{1, 2}, {3}}, milltest.Output[int](kit, "out"))
	assert.Equal(t, map[string]int{"n": 6}, milltest.State[string, int](kit, "sums"))
	p := kit.Progress()
	assert.EqualValues(t, 1, skipped(p[0]))
	assert.EqualValues(t, 3, p[0].Sources[0].Ranges[0].Until)
	assert.Zero(t, skipped(p[1]), "no loop: it does not come again")
}

// skipped is how many records of the batch were dropped, whoever dropped them.
func skipped(p dstream.Progress) (n int64) {
	for _, s := range p.Sources {
		n += s.Skipped
	}
	return n
}

// report 30: an error or a panic of the state's function has key, origin and
// stack, and follows the same choice. The state that it wrote before is undone.
func TestBadCallFollowsTheSameChoice(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"panic", "fail"} {
		kit, in := decoding(t)
		in.Batch("1").Batch("2", how, "3")
		kit.Tick(2)
		err := kit.Err()
		var at *rdd.RecordError
		require.ErrorAs(t, err, &at, how)
		assert.Equal(t, []any{"sums", how, "texts", "0", int64(2)}, []any{at.Operator, at.Key, at.Stream, at.Partition, at.Offset})
		if how == "panic" {
			var p *rdd.PanicError
			require.ErrorAs(t, err, &p)
			assert.Equal(t, "the function's own", p.Value)
			assert.Contains(t, string(p.Stack), "records_test.go")
		} else {
			assert.ErrorIs(t, err, errOwn)
		}
		assert.Equal(t, map[string]int{"n": 1}, milltest.State[string, int](kit, "sums"))

		kit, in = decoding(t, dstream.WithRecordPolicy(dstream.Skip))
		in.Batch("1", how, "2")
		kit.Tick(1)
		require.NoError(t, kit.Err(), how)
		assert.Equal(t, [][]int{{1, 2}}, milltest.Output[int](kit, "out"), how)
		assert.Equal(t, map[string]int{"n": 3}, milltest.State[string, int](kit, "sums"), "nothing of the bad record stays")
		assert.EqualValues(t, 1, skipped(kit.Progress()[0]), how)
		assert.EqualValues(t, 1, kit.Progress()[0].Operators[0].Skipped, how)
	}
}
