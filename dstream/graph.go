package dstream

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/sink"
)

// node is one stream of the graph. It is not generic: the typed shell that made
// it left closures, which pass whole RDDs as any, once per batch.
type node struct {
	ssc      *StreamingContext // nil: the stream was made from no stream
	id       int
	kind     string // the operator: "Map", "Union" …
	name     string // "" until Named
	caller   string // file:line of the user's call
	parents  []*node
	slide    time.Duration
	remember time.Duration // set by the user, 0: the context's
	cached   bool

	build func(b *batchRun) (any, error)      // the RDD of this batch
	keep  func(r any) (kept any, drop func()) // rows kept until drop
	// stable: the stream's own RDD can be read again without running anything
	// twice (a stateful operator's output), so keeping it would be a copy.
	stable bool
	// constant: the stream gives the same RDD in every batch.
	constant bool
	// free: all that it is made of is constant, so it goes with streams of any slide.
	free bool
	// lookback: a windowed stream reads its parents' batches so far back.
	lookback time.Duration
	empty    func() any // the RDD of a batch off the slide

	op statefulNode // set on the stream of a stateful operator
	// face is set on a hidden operator and within a window: the stream that the user
	// sees, or one nearer to it. A hidden operator is named after it.
	face   *node
	suffix string
	// badKey is set on a hidden operator whose rows have keys that cannot be such: that
	// is told already, and is why they cannot be stored.
	badKey bool
	// log is set on a windowed stream of a context with a checkpoint.
	log *batchLog
	src *input // set on the stream of a source
	// policy is the operator's own record policy, nil: the context's.
	policy   *RecordPolicy
	policyAt string // the line of its call

	// Frozen at the start.
	wantKept  bool // an output or a Transform reads it
	consumers int
	live      bool          // an output depends on it
	needed    time.Duration // how long windows need it remembered
	kept      bool
}

// label is the name that messages, the test kit and progress use.
func (n *node) label() string {
	if n.name != "" {
		return n.name
	}
	if n.face != nil && !sabotage.On("hidden-named-itself") {
		return n.face.label() + n.suffix
	}
	return fmt.Sprintf("%s-%d", n.kind, n.id)
}

// newNode adds a stream to the graph of its parents. Faults of the call are
// noted on the context; the stream is made all the same, so that one run of the
// job's code finds all of them.
func newNode(ssc *StreamingContext, kind string, parents ...*node) *node {
	n := &node{kind: kind, caller: caller(), parents: parents}
	missing := false
	for _, p := range parents {
		if p == nil || p.ssc == nil {
			missing = true
			continue
		}
		if ssc == nil {
			ssc = p.ssc
		}
	}
	if ssc == nil {
		return n
	}
	n.ssc = ssc
	ssc.mu.Lock()
	defer ssc.mu.Unlock()
	n.id = len(ssc.nodes)
	slideErr := n.inheritSlide()
	if err := ssc.addable(); err != nil {
		ssc.lateFault(n.caller, n.kind, err) // the run reads the graph: it stays as it is
		return n
	}
	ssc.nodes = append(ssc.nodes, n)
	if missing {
		ssc.addFault(n, errNilStream)
	}
	if slideErr != nil {
		ssc.addFault(n, slideErr)
	}
	for _, p := range parents {
		if p != nil && p.ssc != nil && p.ssc != ssc {
			ssc.addFault(n, fmt.Errorf("%w: %q was made at %s", ErrOtherContext, p.label(), p.caller))
		}
	}
	return n
}

// fault notes what is wrong with the call that made n.
func (n *node) fault(err error) {
	if n.ssc == nil {
		return
	}
	n.ssc.mu.Lock()
	defer n.ssc.mu.Unlock()
	n.ssc.addFault(n, err)
}

func (n *node) check(errs ...error) {
	for _, err := range errs {
		if err != nil {
			n.fault(err)
		}
	}
}

var (
	errNilFunction = errors.New("the function is nil")
	errNilStream   = errors.New("the input stream is nil")
)

func nilFunction(isNil bool) error {
	if isNil {
		return errNilFunction
	}
	return nil
}

// output is a registered output operation.
type output struct {
	node   *node // what it reads
	name   string
	kind   string
	caller string
	run    func(b *batchRun, c *outputContext) error
	rows   func(b *batchRun, c *outputContext) (any, error)
	parts  func(b *batchRun, c *outputContext) (any, error)

	letters bool // it is of node's bad records, not of its stream

	saves *savePlace // where it saves files, if it does

	checks []func() error // of whoever made it (Checked)

	// Of an exactly-once sink.
	unit      sink.Unit
	bind      func(b *batchRun) (sink.Output, error)
	rowsGiven []int64 // to the sink in the running epoch, by partition
}

// label is the output's own name, else its stream's.
func (o *output) label() string {
	if o.name != "" {
		return o.name
	}
	return o.node.label()
}

// freeze fixes what the start needs to know of the graph: which streams an
// output depends on, and which are kept because they are read more than once.
func (ssc *StreamingContext) freeze() {
	var visit func(n *node)
	visit = func(n *node) {
		n.consumers++
		if n.live {
			return
		}
		n.live = true
		for _, p := range n.parents {
			visit(p)
		}
		if n.log != nil {
			visit(n.log.op)
		}
	}
	for _, o := range ssc.outputs {
		if o.letters {
			continue
		}
		o.node.wantKept = true
		visit(o.node)
	}
	ssc.rememberForWindows()
	for _, n := range ssc.nodes {
		n.kept = n.live && !sabotage.On("consumers-not-kept") && (n.consumers > 1 || n.wantKept || n.cached || n.remember > 0)
	}
}

// Notes lists what is legal and yet hardly meant: operators that no output
// depends on, and so never run.
func (ssc *StreamingContext) Notes() []string {
	ssc.mu.Lock()
	defer ssc.mu.Unlock()
	reached := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if n == nil || reached[n] {
			return
		}
		reached[n] = true
		for _, p := range n.parents {
			visit(p)
		}
		if n.log != nil {
			visit(n.log.op)
		}
	}
	for _, o := range ssc.outputs {
		if !o.letters {
			visit(o.node)
		}
	}
	var notes []string
	for _, n := range ssc.nodes {
		leaf := !slices.ContainsFunc(ssc.nodes, func(m *node) bool { return slices.Contains(m.parents, n) })
		if leaf && !reached[n] {
			notes = append(notes, fmt.Sprintf("%s: no output depends on %s %q: it does not run", n.caller, n.kind, n.label()))
		}
	}
	return notes
}
