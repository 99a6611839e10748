package milltest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/statemill/statemill/internal/harness"
)

// Timed is a state with the time of its last update: the batch time, in UTC, of
// the last record that wrote it (or touched it, where a timeout is set).
type Timed[S any] struct {
	State S
	Time  time.Time
}

// State gives the newest committed state of the stateful operator of that name.
// The map is the caller's; what states refer to is the operator's and must not be
// changed. A wrong name or type ends the test.
func State[K comparable, S any](k *Kit, op string) map[K]S {
	k.t.Helper()
	rows := stateRows[K, S](k, op)
	out := make(map[K]S, len(rows))
	for _, r := range rows {
		out[r.Key] = r.State
	}
	return out
}

// StateTimes is State with the update time of every key.
func StateTimes[K comparable, S any](k *Kit, op string) map[K]Timed[S] {
	k.t.Helper()
	rows := stateRows[K, S](k, op)
	out := make(map[K]Timed[S], len(rows))
	for _, r := range rows {
		out[r.Key] = Timed[S]{State: r.State, Time: time.Unix(0, r.Time).UTC()}
	}
	return out
}

func stateRows[K comparable, S any](k *Kit, op string) []harness.StateRow[K, S] {
	k.t.Helper()
	k.mustBeFine("State " + op)
	engine := k.h.Engine()
	if engine == nil {
		return nil // nothing has run yet
	}
	v, err := engine.State(op)
	if err != nil {
		k.t.Fatalf("milltest: state of %q: %v (the job has %q)", op, err, engine.Operators())
	}
	rows, ok := v.([]harness.StateRow[K, S])
	if !ok {
		var want []harness.StateRow[K, S]
		k.t.Fatalf("milltest: state of %q: it holds %s, not %s", op, fmt.Sprintf("%T", v), fmt.Sprintf("%T", want))
	}
	k.pins.looked[op] += k.lookAtStates(op, reflect.ValueOf(rows), pinLimit-k.pins.looked[op])
	return rows
}
