package main

import (
	"context"
	"errors"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
)

// delivery is an event as it came in; deliveries with equal IDs are the same event.
type delivery struct {
	ID, Text string
}

// verdict is the output: a delivery, and whether it is the first one that is
// remembered of its event.
type verdict struct {
	delivery
	First bool
	Since time.Time // batch time of the first delivery
}

var errNoID = errors.New("delivery without an ID")

// judge is the function of the state, which is the time of the first delivery. The
// final call of an ID that is forgotten gives nothing.
func judge(batch time.Time, id string, d dstream.Option[delivery], first *dstream.State[time.Time]) (verdict, bool, error) {
	if first.IsTimingOut() {
		return verdict{}, false, nil
	}
	if id == "" {
		return verdict{}, false, errNoID
	}
	got, _ := d.Get()
	since, repeated := first.Lookup()
	if !repeated {
		since = batch
		first.Update(since)
	}
	return verdict{delivery: got, First: !repeated, Since: since}, true, nil
}

// outputs are called with what a batch let through and what it held back.
type outputs struct {
	first    func(b dstream.Batch, v verdict) error
	repeated func(b dstream.Batch, v verdict) error
}

// job tells first deliveries from repetitions; an ID is forgotten when nothing has
// come of it for longer than remember.
func job(deliveries source.Source[delivery], remember time.Duration, out outputs) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		in := dstream.From(ssc, "deliveries", deliveries)
		byID := dstream.KeyBy(in, func(d delivery) string { return d.ID })
		verdicts := dstream.MapWithState(byID, dstream.FunctionErr(judge).
			Named("seen").Timeout(remember).NumPartitions(4))

		// Two streams of one: the function above runs once for each delivery.
		first := dstream.Filter(verdicts, func(v verdict) bool { return v.First })
		dstream.Foreach(first, func(_ context.Context, b dstream.Batch, v verdict) error {
			return out.first(b, v)
		}, dstream.Name("first"))
		repeated := dstream.Filter(verdicts, func(v verdict) bool { return !v.First })
		dstream.Foreach(repeated, func(_ context.Context, b dstream.Batch, v verdict) error {
			return out.repeated(b, v)
		}, dstream.Name("repeated"))
		return nil
	}
}
