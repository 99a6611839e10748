package oracle

import (
	"fmt"
	"io"
	"sort"
)

// Outcome is how one case ended.
type Outcome int

// The outcomes of a case.
const (
	Passed Outcome = iota
	Failed
	Skipped // the operator, or what the case needs of it, does not exist yet
)

// Counts are the numbers of one line of the summary.
type Counts struct{ Cases, Passed, Failed, Skipped int }

func (c *Counts) add(o Outcome) {
	c.Cases++
	switch o {
	case Passed:
		c.Passed++
	case Failed:
		c.Failed++
	default:
		c.Skipped++
	}
}

// String is the part of a summary line that has the numbers.
func (c Counts) String() string {
	return fmt.Sprintf("cases=%d passed=%d failed=%d skipped=%d", c.Cases, c.Passed, c.Failed, c.Skipped)
}

// Summary counts the cases by operator. The zero value is ready to use.
type Summary struct {
	ops map[string]*Counts
}

// Group is the operator under which a case is counted. Cases that Spark ran with
// stops have a group of their own; where they are run uninterrupted, another one, as
// they prove less than they were recorded for.
func Group(c *Case) string {
	switch {
	case !hasStops(c):
		return c.Op
	case c.Op == "mapWithState", c.Op == "updateStateByKey", windowReplayer(c.Op) != nil:
		return c.Op + "/stops"
	default:
		return c.Op + "/uninterrupted"
	}
}

// hasStops says that a case is more than one run, on one checkpoint.
func hasStops(c *Case) bool {
	return len(c.Config.StopAfterBatches)+len(c.Config.RepartitionAfterBatch) > 0
}

// Add counts one case.
func (s *Summary) Add(c *Case, o Outcome) {
	if s.ops == nil {
		s.ops = map[string]*Counts{}
	}
	g := Group(c)
	if s.ops[g] == nil {
		s.ops[g] = &Counts{}
	}
	s.ops[g].add(o)
}

// Total is the sum over all operators.
func (s *Summary) Total() Counts {
	var t Counts
	for _, c := range s.ops {
		t.Cases += c.Cases
		t.Passed += c.Passed
		t.Failed += c.Failed
		t.Skipped += c.Skipped
	}
	return t
}

// Write prints one line an operator, sorted, and the total.
func (s *Summary) Write(w io.Writer) error {
	names := make([]string, 0, len(s.ops))
	for n := range s.ops {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		if _, err := fmt.Fprintf(w, "oracle: op=%s %s\n", n, s.ops[n]); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "oracle: total %s\n", s.Total())
	return err
}
