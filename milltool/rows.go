package milltool

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/partitioner"
)

// entry is one key of a version.
type entry struct {
	part     int
	key      string // canonical bytes
	state    []byte // encoded
	hasState bool
	time     int64
}

// same tells that two entries hold the same state; times are not compared.
func (e *entry) same(o *entry) bool {
	return e.hasState == o.hasState && string(e.state) == string(o.state)
}

// entries reads a partition of a version, in the order of the keys' bytes.
func (v *view) entries(ctx context.Context, op *checkpoint.Operator, part int, n uint64) ([]entry, error) {
	var list []entry
	err := checkpoint.ReadRows(ctx, v.root, op.Number, part, n, v.notice, func(r checkpoint.Row) error {
		list = append(list, entry{part, string(r.Key), append([]byte(nil), r.State...), r.HasState, r.Time})
		return nil
	})
	return list, err
}

// places gives the partitions that a key may be in: one, unless only the job
// knows.
func places(op *checkpoint.Operator, key []byte) []int {
	if place, ok := partitioner.Stored(op.Partitioner); ok {
		return []int{place(key, op.Partitions)}
	}
	return every(op)
}

// every lists all partitions of an operator.
func every(op *checkpoint.Operator) []int {
	all := make([]int, op.Partitions)
	for i := range all {
		all[i] = i
	}
	return all
}

// find reads one key of a version.
func (v *view) find(ctx context.Context, op *checkpoint.Operator, key []byte, n uint64) (*entry, error) {
	for _, part := range places(op, key) {
		var found *entry
		err := checkpoint.ReadRows(ctx, v.root, op.Number, part, n, v.notice, func(r checkpoint.Row) error {
			if string(r.Key) == string(key) {
				found = &entry{part, string(key), append([]byte(nil), r.State...), r.HasState, r.Time}
			}
			return nil
		})
		if err != nil || found != nil {
			return found, err
		}
	}
	return nil, nil
}

// keyOf reads a key of the command line by the operator's schema.
func keyOf(op *checkpoint.Operator, text string) ([]byte, error) {
	key, err := op.Key.AppendKey(nil, text)
	if err != nil {
		return nil, usagef("%s", strings.TrimPrefix(err.Error(), "codec: "))
	}
	return key, nil
}

// keyJSON and stateJSON print an entry by the schemas of its version.
func keyJSON(op *checkpoint.Operator, key string) (json.RawMessage, error) {
	b, err := op.Key.AppendJSON(nil, []byte(key))
	if err != nil {
		return nil, fmt.Errorf("operator %q: a key cannot be read: %w", op.Name, err)
	}
	return b, nil
}

func stateJSON(op *checkpoint.Operator, e *entry) (json.RawMessage, error) {
	if !e.hasState {
		return nil, nil
	}
	b, err := printState(op, e.state)
	if err != nil {
		return nil, fmt.Errorf("operator %q: the state of a key cannot be read: %w", op.Name, err)
	}
	return b, nil
}

// printState prints a state by the operator's schema, or by an older one that
// its states may still have.
func printState(op *checkpoint.Operator, state []byte) (json.RawMessage, error) {
	b, err := op.State.AppendJSON(nil, state)
	for i := 0; err != nil && i < len(op.Older); i++ {
		if older, oerr := op.Older[i].State.AppendJSON(nil, state); oerr == nil {
			return older, nil
		}
	}
	return b, err
}

// times are what the time of an entry says.
type times struct {
	// Updated is when the key was last updated: a batch time.
	Updated string `json:"updated,omitempty"`
	// Deadline is when the key is due, in operators that set deadlines.
	Deadline string `json:"deadline,omitempty"`
}

func timesOf(op *checkpoint.Operator, t int64) times {
	switch {
	case !op.Deadlines:
		return times{Updated: stamp(t)}
	case t < 0: // a deadline without a state, see package statefile
		return times{Deadline: stamp(^t)}
	case t == math.MaxInt64:
		return times{}
	}
	return times{Deadline: stamp(t)}
}

// text is the one of the two that is there.
func (t times) text() string {
	if t.Deadline != "" {
		return t.Deadline
	}
	return dash(t.Updated)
}

// timeTitle is the head of the column with text.
func timeTitle(op *checkpoint.Operator) string {
	if op.Deadlines {
		return "DEADLINE"
	}
	return "UPDATED"
}
