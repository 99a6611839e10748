package dstream

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/sabotage"
)

// Counter is a number to which a job's functions add, and which counts every
// committed epoch once: what a failed attempt of a partition or an output had
// added is dropped, and so is all of an epoch that is given up. With a checkpoint
// the total is part of each commit and goes on from there in the next run.
//
// Make it with StreamingContext.Counter. Its methods may be called from any
// goroutine.
//
// So it is after a crash, at any instant: an epoch that all exactly-once sinks of the
// job have already is committed by the next run without computing it, with the
// additions that it had when it was computed. For that a job with counters and
// exactly-once sinks writes one small document more for each batch, counts/<epoch>.
//
// An addition belongs to the attempt of a partition or output in whose call it is made.
// Of a goroutine that a user's function has started itself that cannot be told: it adds
// to the running epoch, even if the attempt fails. Functions of a shuffle that the body
// of a ForeachRDD makes itself count in each of its attempts. What an exactly-once
// sink's own functions add (Encode) is dropped: they run when the additions of the
// epoch are made up, and as often as writing it needs.
type Counter struct {
	name string
	of   *counting
}

// CounterProgress is one counter after a batch.
type CounterProgress struct {
	Name  string `json:"name"`
	Added int64  `json:"added"` // by the batch; may be negative
	Total int64  `json:"total"` // over all committed epochs
}

// Counter gives the counter of that name, which must not be empty: the same one
// for the same name. New ones are made before the start.
func (ssc *StreamingContext) Counter(name string) *Counter {
	at := caller()
	ssc.mu.Lock()
	defer ssc.mu.Unlock()
	if c, ok := ssc.counting.byName[name]; ok {
		return c
	}
	if err := ssc.addable(); err != nil {
		ssc.lateFault(at, "StreamingContext.Counter", err)
		return &Counter{name: name, of: newCounting()} // of no use: the run ends
	}
	if name == "" {
		ssc.faults = append(ssc.faults, &Fault{Caller: at, Call: "dstream.StreamingContext.Counter", Err: errors.New("the counter has no name")})
	}
	c := &Counter{name: name, of: ssc.counting}
	ssc.counting.byName[name] = c
	return c
}

// Name is the counter's name.
func (c *Counter) Name() string { return c.name }

// Add adds n, which may be negative. It takes about two microseconds, as it finds
// out for which attempt it is called: where records are many, add once for several
// (as in MapPartitions).
func (c *Counter) Add(n int64) {
	added := c.of.current()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if added == nil {
		added = c.of.epoch
	}
	added[c] += n
}

// Value is the total over all committed epochs.
func (c *Counter) Value() int64 {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.of.total[c]
}

// additions are what one attempt, or one epoch, adds.
type additions map[*Counter]int64

// counting holds the counters of a context.
type counting struct {
	byName map[string]*Counter // fixed at the start
	// attempts has the additions of the attempt that a goroutine is in.
	attempts sync.Map // goroutine number → additions

	mu    sync.Mutex // protects what follows, and the additions of attempts
	epoch additions  // of what has succeeded in the running epoch
	ends  additions  // of the epoch that is being committed
	total additions  // committed
	// others are totals of counters that an older program had: they are kept.
	others map[string]int64
}

func newCounting() *counting {
	return &counting{byName: map[string]*Counter{}, epoch: additions{}, ends: additions{}, total: additions{}}
}

// attempt runs f as an attempt: its additions go to parent, or to the epoch if that
// is nil, when f has succeeded, and nowhere otherwise. A nil receiver only runs f.
func (k *counting) attempt(parent additions, f func() error) error {
	if k == nil {
		return f()
	}
	id, mine := goroutine(), additions{}
	before, nested := k.attempts.Swap(id, mine)
	defer func() { // also when f panics or ends the goroutine
		if nested {
			k.attempts.Store(id, before)
		} else {
			k.attempts.Delete(id)
		}
	}()
	err := f()
	if err != nil && !sabotage.On("counter-keeps-failed") {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if parent == nil {
		parent = k.epoch
	}
	for c, n := range mine {
		parent[c] += n
	}
	return err
}

// current gives the additions of the attempt that the calling goroutine is in; nil
// if it is in none.
func (k *counting) current() additions {
	if k == nil {
		return nil
	}
	if a, ok := k.attempts.Load(goroutine()); ok {
		return a.(additions)
	}
	return nil
}

// end closes the running epoch: what is added from now on is the next one's.
func (k *counting) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends, k.epoch = k.epoch, additions{}
}

// drop forgets the running epoch.
func (k *counting) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.ends)
	clear(k.epoch)
}

// durable adds the totals as they are with the ended epoch to a commit's counters.
func (k *counting) durable(out map[string]int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.Copy(out, k.others)
	for name, c := range k.byName {
		out[checkpoint.TotalPrefix+name] = k.total[c] + k.ends[c]
	}
}

// committed makes the ended epoch part of the totals, and tells what there is.
func (k *counting) committed() (all []CounterProgress) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(k.byName)) {
		c := k.byName[name]
		k.total[c] += k.ends[c]
		all = append(all, CounterProgress{Name: name, Added: k.ends[c], Total: k.total[c]})
	}
	clear(k.ends)
	return all
}

// restore sets the totals to those of a commit.
func (k *counting) restore(commit *checkpoint.Commit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.ends)
	clear(k.epoch)
	clear(k.total)
	if commit == nil {
		return
	}
	k.others = map[string]int64{}
	for name, n := range commit.Counters {
		of, isTotal := strings.CutPrefix(name, checkpoint.TotalPrefix)
		if c, ok := k.byName[of]; isTotal && ok {
			k.total[c] = n
		} else if isTotal {
			k.others[name] = n
		}
	}
}

// goroutine is the number of the calling goroutine. The language has no other way
// to tell, inside of a function that is given no context, which attempt it is
// called for.
func goroutine() uint64 {
	var buf [64]byte
	text := buf[:runtime.Stack(buf[:], false)]
	text = bytes.TrimPrefix(text, []byte("goroutine "))
	if i := bytes.IndexByte(text, ' '); i > 0 {
		if n, err := strconv.ParseUint(string(text[:i]), 10, 64); err == nil {
			return n
		}
	}
	panic(fmt.Sprintf("the runtime's stack text begins with %q", buf))
}
