package dstream_test

import (
	"fmt"
	"maps"
	"time"

	"github.com/statemill/statemill/dstream"
)

// A running sum by key. In the final call of an idle key there is no value, and what
// it gives is emitted.
func ExampleMapWithState() {
	play(4, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.MapWithState(prices(ssc), dstream.Function(
			func(key string, price dstream.Option[int], sum *dstream.State[int]) string {
				if sum.IsTimingOut() {
					return fmt.Sprint(key, " ends with ", sum.OrElse(0))
				}
				now := sum.OrElse(0) + price.OrElse(0)
				sum.Update(now)
				return fmt.Sprint(key, " ", now)
			}).Named("sums").Timeout(time.Second).NumPartitions(1))
	})
	// Output:
	// 1s [apple 3 pear 5 apple 7]
	// 2s [pear 11]
	// 3s [apple ends with 7]
	// 4s [pear ends with 11]
}

// All keys with their states, after each batch.
func ExampleMapWithStateDStream_StateSnapshots() {
	play(3, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int]] {
		sums := dstream.MapWithState(prices(ssc), dstream.Function(
			func(_ string, price dstream.Option[int], sum *dstream.State[int]) int {
				sum.Update(sum.OrElse(0) + price.OrElse(0))
				return 0
			}).Named("sums").NumPartitions(1))
		return sums.StateSnapshots()
	})
	// Output:
	// 1s [{apple 7} {pear 5}]
	// 2s [{apple 7} {pear 11}]
	// 3s [{apple 7} {pear 11}]
}

// The long form: it gets the batch time, and says whether it has a result. Here: each
// key when it is seen first, and not those of the initial state.
func ExampleFunctionTime() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		spec := dstream.FunctionTime(func(batch time.Time, key string, _ dstream.Option[int], seen *dstream.State[bool]) (string, bool) {
			if seen.Exists() {
				return "", false
			}
			seen.Update(true)
			return fmt.Sprint(key, " since ", batch.Sub(zero)), true
		})
		return dstream.MapWithState(prices(ssc), spec.Named("seen").InitialState(maps.All(map[string]bool{"pear": true})).NumPartitions(1))
	})
	// Output:
	// 1s [apple since 1s]
	// 2s []
}

// An error fails the batch and ends the run, unless WithRecordPolicy says otherwise.
func ExampleFunctionErr() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[int] {
		return dstream.MapWithState(prices(ssc), dstream.FunctionErr(
			func(_ time.Time, key string, price dstream.Option[int], highest *dstream.State[int]) (int, bool, error) {
				p, _ := price.Get()
				if p < 0 {
					return 0, false, fmt.Errorf("the price of %s is %d", key, p)
				}
				rises := p > highest.OrElse(0)
				if rises {
					highest.Update(p)
				}
				return p, rises, nil
			}).Named("highest").NumPartitions(1))
	})
	// Output: 1s [3 5 4]
}

// Deadlines of one's own: the sum of what came within two seconds after a key's first
// record. MapWithState's timeout would begin anew with each record.
func ExampleKeyed() {
	play(4, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.Keyed(prices(ssc), "sums", func(c *dstream.Call[int, string], key string, price dstream.Option[int]) error {
			p, isRecord := price.Get()
			if !isRecord { // the deadline has passed; the state goes after this call
				c.Emit(fmt.Sprint(key, " ", c.State.OrElse(0)))
				return nil
			}
			if !c.State.Exists() {
				c.SetDeadline(c.Batch.Time.Add(2 * time.Second))
			}
			c.State.Update(c.State.OrElse(0) + p)
			return nil
		}, onePartition)
	})
	// Output:
	// 1s []
	// 2s []
	// 3s []
	// 4s [apple 7 pear 11]
}

// How many values a key got and when, as long as it gets any.
func ExampleUpdateStateByKeyTime() {
	play(3, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, string]] {
		return dstream.UpdateStateByKeyTime(prices(ssc),
			func(batch time.Time, _ string, values []int, _ dstream.Option[string]) dstream.Option[string] {
				if len(values) == 0 {
					return dstream.None[string]()
				}
				return dstream.Some(fmt.Sprint(len(values), " at ", batch.Sub(zero)))
			}, onePartition, dstream.Name("latest"))
	})
	// Output:
	// 1s [{apple 2 at 1s} {pear 1 at 1s}]
	// 2s [{pear 1 at 2s}]
	// 3s []
}

func ExampleUpdateStateByKeyErr() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int]] {
		return dstream.UpdateStateByKeyErr(prices(ssc),
			func(_ time.Time, key string, values []int, highest dstream.Option[int]) (dstream.Option[int], error) {
				best := highest.OrElse(0)
				for _, v := range values {
					if v < 0 {
						return highest, fmt.Errorf("the price of %s is %d", key, v)
					}
					best = max(best, v)
				}
				return dstream.Some(best), nil
			}, onePartition, dstream.Name("highest"))
	})
	// Output:
	// 1s [{apple 4} {pear 5}]
	// 2s [{apple 4} {pear 6}]
}
