package checkpoint

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/source"
)

// Positions in sources live in the plans, by the sources' names. A source that a
// program leaves out keeps its position: every plan carries it on, so that the
// source goes on there when it comes back. A name that is gone beside one that is
// new looks like a source that was renamed, which would be read from its start once
// more: that is refused until the user says which it is.

// SourcesError tells that the program has other sources than the checkpoint.
type SourcesError struct {
	// Missing are sources of the checkpoint that the program lacks, New those of the
	// program that the checkpoint does not know; neither is empty.
	Missing, New []string
}

// Error names the sources and the ways out.
func (e *SourcesError) Error() string {
	return fmt.Sprintf("the program has no source %s, whose position is in the checkpoint, and a new source %s: if it is the same one, give it its old name; if not, give the old position up by WithDrop(%s)",
		quoted(e.Missing), quoted(e.New), quoted(e.Missing))
}

func quoted(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, fmt.Sprintf("%q", n))
	}
	return strings.Join(out, ", ")
}

// fitSources compares the job's sources with those of the last plan.
func (s *Session) fitSources(last *Plan) error {
	missing, fresh := s.otherSources(last)
	if len(missing) == 0 || len(fresh) == 0 {
		return nil
	}
	return &RefusedError{Reasons: []error{&SourcesError{Missing: missing, New: fresh}}}
}

// otherSources are the sources that only the last plan has, but for those that are
// given up, and those that only the job has.
func (s *Session) otherSources(last *Plan) (missing, fresh []string) {
	if last == nil || s.cfg.Sources == nil {
		return nil, nil
	}
	planned := map[string]bool{}
	for _, p := range last.Sources {
		planned[p.Name] = true
		if !slices.Contains(s.cfg.Sources, p.Name) && !slices.Contains(s.cfg.Drop, p.Name) && len(p.Ranges) > 0 {
			missing = append(missing, p.Name)
		}
	}
	for _, name := range s.cfg.Sources {
		if !planned[name] {
			fresh = append(fresh, name)
		}
	}
	return missing, fresh
}

// tellSources tells of sources that came or went.
func (s *Session) tellSources(last *Plan) {
	missing, fresh := s.otherSources(last)
	for _, name := range missing {
		s.notice(Notice{Kind: NoticeSource, Text: fmt.Sprintf("source %q of the checkpoint is not in the program; its position is kept for when it comes back", name)})
	}
	for _, name := range fresh {
		s.notice(Notice{Kind: NoticeSource, Text: fmt.Sprintf("source %q is new: it begins where a first start begins", name)})
	}
}

// carry completes a plan by the positions of sources that the job does not have.
func (s *Session) carry(p *Plan) {
	if s.start.Last == nil || sabotage.On("source-position-forgotten") {
		return
	}
	for _, old := range s.start.Last.Sources {
		has := func(x SourcePlan) bool { return x.Name == old.Name }
		if slices.ContainsFunc(p.Sources, has) || slices.Contains(s.cfg.Drop, old.Name) {
			continue
		}
		kept := SourcePlan{Name: old.Name, Ranges: slices.Clone(old.Ranges)}
		for i := range kept.Ranges {
			kept.Ranges[i].From = kept.Ranges[i].Until
		}
		p.Sources = append(p.Sources, kept)
	}
}

// checkNames refuses names that a document, which is text, would not give back.
func checkNames(sources []SourcePlan) error {
	for _, s := range sources {
		bad := func(r source.Range) bool {
			return !utf8.ValidString(r.Partition) || !utf8.ValidString(r.Epoch) || !utf8.ValidString(r.Mark)
		}
		if i := slices.IndexFunc(s.Ranges, bad); i >= 0 || !utf8.ValidString(s.Name) {
			r := source.Range{}
			if i >= 0 {
				r = s.Ranges[i]
			}
			return &permanent{fmt.Errorf("checkpoint: source %q, partition %q of %q: names must be UTF-8 text, or the position would be lost", s.Name, r.Partition, r.Epoch)}
		}
	}
	return nil
}
