package checkpoint

import (
	"errors"
	"fmt"
	"math"

	"github.com/statemill/statemill/checkpoint/statefile"
)

// The checks of documents that have been read: what the code that uses them
// relies on, so that a hostile document is an error and not a panic.

// maxParts bounds what a document may claim; it is also the most partitions that
// a state file can have.
const maxParts = math.MaxInt32

func (o *Owner) check() error {
	if o.Term == 0 || o.Run == "" {
		return fmt.Errorf("term %d of run %q", o.Term, o.Run)
	}
	return nil
}

func (m *Metadata) check() error {
	if m.Seq == 0 || m.Prev >= m.Seq || m.Root == "" || m.Interval <= 0 {
		return fmt.Errorf("seq %d after %d of root %q with interval %d", m.Seq, m.Prev, m.Root, m.Interval)
	}
	names := map[string]bool{}
	last := 0
	for i := range m.Operators {
		o := &m.Operators[i]
		if o.Number <= last || o.Number > m.Numbers || o.Name == "" || names[o.Name] {
			return fmt.Errorf("operator %q has number %d after %d, of %d", o.Name, o.Number, last, m.Numbers)
		}
		if o.Partitions < 1 || o.Partitions > maxParts || o.Layout < 0 {
			return fmt.Errorf("operator %q has %d partitions, layout %d", o.Name, o.Partitions, o.Layout)
		}
		names[o.Name], last = true, o.Number
	}
	return nil
}

func checkKind(kind string, epoch, term uint64) error {
	if epoch == 0 || epoch > math.MaxInt64 || term == 0 || kind != KindBatch && kind != KindChange {
		return fmt.Errorf("epoch %d of kind %q, term %d", epoch, kind, term)
	}
	return nil
}

func (p *Plan) check() error {
	if err := checkKind(p.Kind, p.Epoch, p.Term); err != nil {
		return err
	}
	if p.Kind == KindChange && (len(p.Sources) > 0 || p.Metadata == 0) {
		return fmt.Errorf("a change with %d sources to metadata %d", len(p.Sources), p.Metadata)
	}
	names := map[string]bool{}
	for _, s := range p.Sources {
		if names[s.Name] {
			return fmt.Errorf("source %q twice", s.Name)
		}
		names[s.Name] = true
	}
	return nil
}

func (c *Commit) check() error {
	if err := checkKind(c.Kind, c.Epoch, c.Term); err != nil {
		return err
	}
	if c.Metadata == 0 || c.Floor > c.Epoch {
		return fmt.Errorf("metadata %d, floor %d of epoch %d", c.Metadata, c.Floor, c.Epoch)
	}
	last := 0
	for _, o := range c.Operators {
		if o.Number <= last || o.Layout < 0 || len(o.Partitions) == 0 {
			return fmt.Errorf("operator %d after %d, layout %d, %d partitions", o.Number, last, o.Layout, len(o.Partitions))
		}
		last = o.Number
		for i := range o.Partitions {
			if err := o.Partitions[i].check(c.Epoch); err != nil {
				return fmt.Errorf("operator %d, partition %d: %w", o.Number, i, err)
			}
		}
	}
	names := map[string]bool{}
	for _, s := range c.Sinks {
		if names[s.Name] || s.Epoch > c.Epoch {
			return fmt.Errorf("sink %q at epoch %d, or twice", s.Name, s.Epoch)
		}
		names[s.Name] = true
	}
	return nil
}

var errStateFile = errors.New("a state file that the epoch cannot have")

// check refuses names that would lead out of the folder, or to a file of
// another epoch.
func (p *PartitionCommit) check(epoch uint64) error {
	if p.File == "" {
		if p.Base || p.Size != 0 || !p.Checksum.IsZero() || p.Keys < 0 {
			return errStateFile
		}
		return nil
	}
	var n StateName
	if !n.parseBase(p.File) || n.Kind != statefile.Delta || n.Version != epoch || p.Size <= 0 || p.Keys < 0 {
		return fmt.Errorf("%w: %q, %d bytes, %d keys", errStateFile, p.File, p.Size, p.Keys)
	}
	return nil
}

// operator finds an operator by its number, nil if there is none.
func (m *Metadata) operator(number int) *Operator {
	for i := range m.Operators {
		if m.Operators[i].Number == number {
			return &m.Operators[i]
		}
	}
	return nil
}

// Operator finds an operator by its name, nil if there is none.
func (m *Metadata) Operator(name string) *Operator {
	for i := range m.Operators {
		if m.Operators[i].Name == name {
			return &m.Operators[i]
		}
	}
	return nil
}

// Operator finds the entry of an operator by its number, nil if there is none.
func (c *Commit) Operator(number int) *OperatorCommit {
	for i := range c.Operators {
		if c.Operators[i].Number == number {
			return &c.Operators[i]
		}
	}
	return nil
}

// Sink finds the entry of a sink by its name, nil if there is none.
func (c *Commit) Sink(name string) *SinkCommit {
	for i := range c.Sinks {
		if c.Sinks[i].Name == name {
			return &c.Sinks[i]
		}
	}
	return nil
}
