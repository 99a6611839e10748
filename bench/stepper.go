package main

import (
	"context"
	"time"

	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/staterdd"
)

// A stepper runs the stateful operator alone, version after version, on one partition and one goroutine.
type stepper struct {
	op    *staterdd.Operator[string, int64, int64, output]
	exec  rdd.Executor
	state *staterdd.MapWithStateRDD[string, int64, output]
	now   time.Time
	epoch uint64
}

// newStepper makes an operator without state; timeout 0 means none.
func newStepper(timeout time.Duration) (*stepper, error) {
	spec := staterdd.Function(addOrEnd).Named("sums").NumPartitions(1)
	if timeout > 0 {
		spec = spec.Timeout(timeout)
	}
	s := &stepper{exec: rdd.Local(1, &rdd.Pools{}), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	var err error
	if s.op, err = staterdd.NewOperator(spec, staterdd.Options{Slide: interval, Executor: s.exec}); err != nil {
		return nil, err
	}
	s.state, err = s.op.Initial(s.now)
	return s, err
}

// addOrEnd is add for keys that may time out.
func addOrEnd(key string, value rdd.Option[int64], state *staterdd.State[int64]) output {
	if state.IsTimingOut() {
		return output{key, state.Get()}
	}
	return add(key, value, state)
}

// step makes the next version from a batch and lets the one before go.
func (s *stepper) step(in records) error {
	s.epoch++
	s.now = s.now.Add(interval)
	data := rdd.Shuffle(rdd.New(1, func(_ *rdd.Task, emit func(rdd.Pair[string, int64]) error) error {
		for i, k := range in.keys {
			if err := emit(rdd.KV(k, in.values[i])); err != nil {
				return err
			}
		}
		return nil
	}), s.op.Partitioner())
	next, stage, err := s.op.Advance(s.state, data, staterdd.Batch{Epoch: s.epoch, Time: s.now})
	if err != nil {
		return err
	}
	if err := rdd.Materialize(context.Background(), s.exec, stage); err != nil {
		return err
	}
	if err := next.Seal(); err != nil {
		return err
	}
	data.Release()
	s.state.Release()
	s.state = next
	return nil
}
