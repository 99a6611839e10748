package staterdd

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/rdd"
)

// A given state may carry an update time after the batch that touches it (D4 keeps every key's
// own); the key still times out by the time of its last data (C4, C5), and one without data by
// the time it was given.
func TestGivenTimesToCome(t *testing.T) {
	const s = int64(time.Second)
	spec := Function(func(k string, v rdd.Option[int], st *State[int]) string {
		if !st.IsTimingOut() {
			st.Update(v.OrElse(0))
		}
		return k
	}).Timeout(3 * time.Second).NumPartitions(1)
	op, err := NewOperator(spec, Options{Slide: time.Second})
	require.NoError(t, err)
	cur, err := op.Restore(at(10*s), func(yield func(Timed[string, int]) bool) {
		_ = yield(Timed[string, int]{"early", 1, 40 * s}) && yield(Timed[string, int]{"late", 1, 40 * s}) &&
			yield(Timed[string, int]{"alone", 1, 40 * s})
	})
	require.NoError(t, err)
	f := &fixture[string, int, int, string]{t: t, op: op, cur: cur, exec: rdd.Local(1, nil), parts: 1}
	var got []string
	for i := int64(11); i < 50; i++ {
		var data []rdd.Pair[string, int]
		switch i {
		case 11:
			data = append(data, kv("early", 1))
		case 30: // after many passes that found it not due
			data = append(data, kv("late", 1))
		}
		for _, o := range f.batch(i*s, data...)[len(data):] {
			got = append(got, fmt.Sprint(o, " ", i))
		}
	}
	require.Equal(t, []string{"early 15", "late 34", "alone 44"}, got)
}
