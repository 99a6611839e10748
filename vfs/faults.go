package vfs

import (
	"errors"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// ErrInjected is the error of injected faults that name no other.
var ErrInjected = errors.New("injected fault")

// Rule says which calls a fault strikes.
type Rule struct {
	// Kinds are the kinds of calls; 0 means all.
	Kinds Kind
	// Path is a pattern of path.Match for the last elements of the path, as
	// many as the pattern has, for example "commits/*"; of a link either name
	// may match. "" means all.
	Path string
	// K is the number of the matching call that is struck, counted from 1 since
	// the rule was made; 0 means the first.
	K int
	// Forever strikes all later matching calls too.
	Forever bool
	// Dead makes all calls of any kind and path fail from then on: the process
	// is gone.
	Dead bool
	// Err is the error; nil means ErrInjected.
	Err error
	// After makes the call first: its answer is lost.
	After bool
}

// Faults is an Injector made of rules, for any number of file systems and
// stores of one writer. The zero value lets everything pass. Its methods may be
// called from any goroutine.
type Faults struct {
	mu     sync.Mutex
	rules  []*rule
	calls  int
	hits   int
	dead   error
	frozen *Freezer
}

type rule struct {
	Rule
	seen   int                     // matching calls
	action func(c Call) (hit bool) // nil: fail
	cut    bool
	budget int // bytes that still get through, of a cut
}

// Fail lets a call fail.
func (f *Faults) Fail(r Rule) { f.add(&rule{Rule: r}) }

// Cut lets the first n bytes of matching writes through, cuts the write in
// which the next byte stands, and fails it and all matching writes after it.
// The rule's K, Kinds and After are not used.
func (f *Faults) Cut(n int, r Rule) {
	r.Kinds, r.K, r.After, r.Forever = KindWrite, 0, false, true
	f.add(&rule{Rule: r, cut: true, budget: n})
}

// Do calls do before a call is made, in the goroutine of the caller, for
// example to take a CrashClone; the call itself passes. do may use the file
// system underneath, not the one with faults.
func (f *Faults) Do(r Rule, do func(Call)) {
	f.add(&rule{Rule: r, action: func(c Call) bool { do(c); return false }})
}

// Freeze stops the writer before a call: this call and all later ones of any
// kind and path wait until Thaw.
func (f *Faults) Freeze(r Rule) *Freezer {
	z := &Freezer{reached: make(chan struct{}), thaw: make(chan struct{})}
	f.add(&rule{Rule: r, action: func(Call) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.frozen = z
		z.once.Do(func() { close(z.reached) })
		return true
	}})
	return z
}

// Clear forgets all rules and brings a dead process back to life; who is frozen
// stays so.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules, f.dead = nil, nil
}

// Calls is the number of calls so far: a loop over all k ends when k exceeds
// those of a run without faults.
func (f *Faults) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Hits is the number of calls that failed or were frozen by a rule. A test of a
// fault should assert that there was one.
func (f *Faults) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

func (f *Faults) add(r *rule) {
	r.K = max(r.K, 1)
	if r.Err == nil {
		r.Err = ErrInjected
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, r)
}

// Before applies the rules in the order in which they were made; the first
// that fails the call wins.
func (f *Faults) Before(c Call) Fault {
	f.mu.Lock()
	f.calls++
	var struck []*rule
	for _, r := range f.rules {
		if r.matches(c) {
			struck = append(struck, r)
		}
	}
	f.mu.Unlock()
	for _, r := range struck {
		if r.action != nil && r.action(c) {
			f.hit()
		}
	}
	f.wait()

	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead != nil {
		return Fault{Err: f.dead}
	}
	for _, r := range struck {
		if r.action != nil {
			continue
		}
		keep := 0
		if r.cut {
			keep = r.budget
			r.budget = max(0, r.budget-c.Bytes)
			if c.Bytes <= keep {
				continue // the whole write passes
			}
		}
		f.hits++
		if r.Dead {
			f.dead = r.Err
		}
		return Fault{Err: r.Err, After: r.After, Keep: keep}
	}
	return Fault{}
}

func (f *Faults) hit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hits++
}

// wait stays as long as the writer is frozen.
func (f *Faults) wait() {
	for {
		f.mu.Lock()
		z := f.frozen
		f.mu.Unlock()
		if z == nil {
			return
		}
		<-z.thaw
		f.mu.Lock()
		if f.frozen == z {
			f.frozen = nil
		}
		f.mu.Unlock()
	}
}

// matches counts the call and says whether it is struck. f.mu is held.
func (r *rule) matches(c Call) bool {
	if r.Kinds != 0 && r.Kinds&c.Kind == 0 || !matchPath(r.Path, c.Path) && (c.To == "" || !matchPath(r.Path, c.To)) {
		return false
	}
	r.seen++
	return r.seen == r.K || r.seen > r.K && r.Forever
}

// matchPath matches the last elements. A bad pattern matches nothing, which a
// test sees in Hits.
func matchPath(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	elems := strings.Split(filepath.ToSlash(name), "/")
	n := strings.Count(pattern, "/") + 1
	if len(elems) < n {
		return false
	}
	ok, err := path.Match(pattern, strings.Join(elems[len(elems)-n:], "/"))
	return ok && err == nil
}

// Freezer is a writer frozen between two calls; see [Faults.Freeze].
type Freezer struct {
	reached chan struct{}
	thaw    chan struct{}
	once    sync.Once
	thawed  sync.Once
}

// Reached is closed when the writer stands before the call.
func (z *Freezer) Reached() <-chan struct{} { return z.reached }

// Thaw lets the writer go on; called before the writer has come, it lets it
// pass. More than once does nothing.
func (z *Freezer) Thaw() { z.thawed.Do(func() { close(z.thaw) }) }
