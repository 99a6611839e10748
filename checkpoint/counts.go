package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
)

// Counts is counts/<N>.<term>: what the commit of epoch N is going to say beside its
// state files. A run whose job counts (Config.Counts) makes it when all functions of
// the epoch have run, before the first exactly-once sink gets the epoch. So an epoch
// that every sink has counts when it is adopted, too, which computes nothing.
//
// It goes under the run's own term, as deltas do: what an older run has left, or a
// frozen one writes late, is in nobody's way, and it is read only if the memories of
// the sinks say that this term wrote them, which it did after this document. Their
// digests do not cover it: what a job counts may depend on the attempt, and an epoch
// that is computed again is compared by state and output alone.
//
// Once the commit of a later epoch stands nobody can want it, and it is deleted.
type Counts struct {
	// Format is the format number of the document.
	Format int `json:"format"`
	// Epoch is N.
	Epoch uint64 `json:"epoch"`
	// Term and Run are those of the run that computed it.
	Term uint64 `json:"term"`
	Run  string `json:"run"`
	// Counters are those of the commit to come.
	Counters map[string]int64 `json:"counters"`
}

func (d *Counts) identity() (int, uint64, int) { return d.Format, d.Epoch, countsFormat }

func (d *Counts) check() error {
	if d.Run == "" {
		return errors.New("it is of no run")
	}
	return checkKind(KindBatch, d.Epoch, d.Term)
}

// decodeCounts reads a document by its name, of which both numbers stand inside.
func decodeCounts(b []byte, epoch, term uint64) (*Counts, error) {
	name, d := CountsName(epoch, term), new(Counts)
	if err := decode(b, name, epoch, d); err != nil {
		return nil, err
	}
	if d.Term != term {
		return nil, &CorruptError{Path: name, Number: epoch, Reason: fmt.Sprintf("it says that its term is %d: it was copied or renamed", d.Term)}
	}
	return d, nil
}

// counting says that this run's epochs have a Counts: not without exactly-once sinks,
// without which no epoch is ever adopted.
func (c *Config) counting() bool { return c.Counts && len(c.Sinks) > 0 }

// writeCounts makes the epoch's counters durable.
func (s *Session) writeCounts(ctx context.Context, counters map[string]int64) error {
	if !s.cfg.counting() {
		return nil
	}
	d := &Counts{Format: countsFormat, Epoch: s.Epoch(), Term: s.Term(), Run: s.cfg.Run, Counters: counters}
	name := CountsName(d.Epoch, d.Term)
	_, err := s.create(ctx, name, d, func([]byte) (uint64, error) {
		return 0, fmt.Errorf("checkpoint: put %s: %w by other content: start again under the next term", name, fs.ErrExist)
	})
	s.counted = d
	return err
}

// sameCounters fails if a commit would say something else than an adoption.
func (s *Session) sameCounters(in *CommitInput) error {
	if s.counted != nil && !maps.Equal(s.counted.Counters, in.Counters) {
		return fmt.Errorf("checkpoint: commit of epoch %d: the counters are others than before the sinks were written", s.Epoch())
	}
	return nil
}

// adoptCounts finds what the run of a term counted in an epoch that every sink has.
// Whether there must be something, the owner file of that run says.
func (s *Session) adoptCounts(ctx context.Context, epoch, term uint64) error {
	s.counted = nil
	o, oerr := readFresh[Owner](ctx, s.cfg.Store, ownerFolder, term)
	switch {
	case oerr == nil && !o.Counts:
		return nil // its job had no counters, or it is of a program that wrote none
	case oerr != nil && !errors.Is(oerr, ErrCorrupt) && !errors.Is(oerr, fs.ErrNotExist):
		return oerr
	}
	name := CountsName(epoch, term)
	b, err := s.cfg.Store.Get(ctx, name)
	if err == nil {
		s.counted, err = decodeCounts(b, epoch, term)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		reason := fmt.Sprintf("it is gone; the run of term %d made it before it wrote the exactly-once sinks", term)
		if oerr != nil {
			reason = fmt.Sprintf("it is not there, and %s, which says whether it must be, cannot be read", OwnerName(term))
		}
		err = &CorruptError{Path: name, Number: epoch, Reason: reason}
	case !errors.Is(err, ErrCorrupt):
		return fmt.Errorf("checkpoint: read %s: %w", name, err)
	}
	if !s.cfg.AcceptRedo {
		return fmt.Errorf("%w; if there is no copy, accept once that counters lack epoch %d (WithAcceptDifferentRedo)", err, epoch)
	}
	s.notice(Notice{Kind: NoticeRedo, Err: err, Text: fmt.Sprintf("what counters had added in epoch %d is lost, and that was accepted", epoch)})
	return nil
}
