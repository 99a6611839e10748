package dstream_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/vfs"
)

// badKey cannot be laid out by key.
type badKey struct{ P *int }

func byKeyJobs[K comparable](name string) map[string]func(c *dstream.StreamingContext) {
	keys := func(c *dstream.StreamingContext) *dstream.DStream[K] { return dstream.QueueNamed(c, "in", 1, []K{}) }
	pairs := func(c *dstream.StreamingContext) *dstream.DStream[dstream.Pair[K, int]] {
		return dstream.MapPair(keys(c), func(k K) (K, int) { return k, 1 })
	}
	sum := func(a, b int) int { return a + b }
	const length, slide = 2 * time.Second, time.Second
	named := dstream.Name("w")
	return map[string]func(c *dstream.StreamingContext){
		"CountByValueAndWindow " + name: func(c *dstream.StreamingContext) {
			dstream.Print(dstream.CountByValueAndWindow(keys(c), length, slide, named), 1)
		},
		"ReduceByKeyAndWindowInverse " + name: func(c *dstream.StreamingContext) {
			dstream.Print(dstream.ReduceByKeyAndWindowInverse(pairs(c), sum, sum, nil, length, slide, named), 1)
		},
		"ReduceByKeyAndWindow " + name: func(c *dstream.StreamingContext) {
			dstream.Print(dstream.ReduceByKeyAndWindow(pairs(c), sum, length, slide, named), 1)
		},
		"GroupByKeyAndWindow " + name: func(c *dstream.StreamingContext) {
			dstream.Print(dstream.GroupByKeyAndWindow(pairs(c), length, slide, named), 1)
		},
		"CountByValue " + name: func(c *dstream.StreamingContext) { dstream.Print(dstream.CountByValue(keys(c), named), 1) },
		"ReduceByKey " + name:  func(c *dstream.StreamingContext) { dstream.Print(dstream.ReduceByKey(pairs(c), sum, named), 1) },
		"UpdateStateByKey " + name: func(c *dstream.StreamingContext) {
			dstream.Print(dstream.UpdateStateByKey(pairs(c), func(_ []int, s dstream.Option[int]) dstream.Option[int] { return s }, named), 1)
		},
		"Keyed " + name: func(c *dstream.StreamingContext) {
			dstream.Print(dstream.Keyed(pairs(c), "w", func(*dstream.Call[int, int], K, dstream.Option[int]) error { return nil }), 1)
		},
	}
}

// A key type that cannot be one, as it has no canonical bytes or may not be comparable, is one fault of the
// call, whatever operators are behind it, and with a checkpoint too.
func TestFaultsOfKeysAreToldOnce(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for _, jobs := range []map[string]func(c *dstream.StreamingContext){byKeyJobs[badKey]("of a pointer"), byKeyJobs[any]("of an interface")} {
			for name, job := range jobs {
				var opts []dstream.ContextOption
				if durable {
					opts = append(opts, dstream.WithCheckpointStore(vfs.NewObjects()))
				}
				c := dstream.NewStreamingContext(time.Second, opts...)
				job(c)
				name = fmt.Sprintf("%s, durable %v", name, durable)
				var wrong *dstream.ValidationError
				require.True(t, errors.As(c.Validate(), &wrong), name)
				require.Len(t, wrong.Faults, 1, "%s: %v", name, wrong)
				require.ErrorContains(t, wrong.Faults[0], "cannot be part of a key", name)
				require.ErrorContains(t, wrong.Faults[0], "validate_once_test.go:", name)
			}
		}
	}
	// Another fault of the same call is told beside it.
	c := dstream.NewStreamingContext(time.Second)
	dstream.Print(dstream.CountByValueAndWindow(dstream.QueueNamed(c, "in", 1, []badKey{}), 0, time.Second, dstream.Name("w")), 1)
	var wrong *dstream.ValidationError
	require.True(t, errors.As(c.Validate(), &wrong))
	require.Len(t, wrong.Faults, 2, "%v", wrong)
}
