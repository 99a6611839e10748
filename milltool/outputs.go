package milltool

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// outputs gathers what the outputs of a replay give.
type outputs struct {
	limit int
	mu    sync.Mutex
	byKey map[string]replayOutput
	errs  []error
}

func newOutputs(limit int) *outputs { return &outputs{limit: limit, byKey: map[string]replayOutput{}} }

// take keeps the rows of an output; a repeated attempt replaces the one before.
func (o *outputs) take(name, kind string, rows any) {
	total, first, err := rowsOf(rows, o.limit)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.errs = append(o.errs, err)
		return
	}
	o.byKey[name+"\x00"+kind] = replayOutput{Name: name, Kind: kind, Total: total, Rows: first}
}

func (o *outputs) list() ([]replayOutput, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := []replayOutput{}
	for _, k := range slices.Sorted(maps.Keys(o.byKey)) {
		list = append(list, o.byKey[k])
	}
	return list, errors.Join(o.errs...)
}
