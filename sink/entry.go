package sink

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/internal/sealed"
)

// EntryFormat is the number of the format of manifests/ that this version
// writes. Lower ones are read for ever.
const EntryFormat = 1

// entry is one file of a unit's log. It is a JSON object on one line whose last
// member is the sum of all bytes before it, so that every changed, missing or
// added byte is found, and jq reads it.
type entry struct {
	Format int    `json:"format"`
	Kind   string `json:"kind"`
	Seq    uint64 `json:"seq"`
	// Prev is the sum of the entry before: an entry that was put in another's
	// place shows.
	Prev Sum    `json:"prev"`
	Root string `json:"root"`
	Unit string `json:"unit"`
	// Term and Run are those of the run that wrote the entry.
	Term uint64 `json:"term"`
	Run  string `json:"run"`
	// Memory is what holds after the entry; a fence carries it over, so that the
	// last entry alone says all. Nil: nothing is committed yet.
	Memory *Memory `json:"memory,omitempty"`
	// Files are what the epoch consists of; a file that no entry names is nothing.
	Files []File `json:"files,omitempty"`
}

const (
	kindFence = "fence"
	kindEpoch = "epoch"
)

// File is one file of an epoch, as its manifest tells it.
type File struct {
	// Name is the file's name below the unit's folder of the root.
	Name string `json:"name"`
	// Output and Partition say what it holds: one partition of an output.
	Output    string `json:"output"`
	Partition int    `json:"partition"`
	// Of is the number of partitions that the output had.
	Of int `json:"of"`
	// Framing says how rows are told apart: "lines" or "records".
	Framing string `json:"framing"`
	// Rows is the number of rows, at least 1.
	Rows int64 `json:"rows"`
	// Size is the length in bytes.
	Size int64 `json:"size"`
	// Checksum is the sum of all bytes.
	Checksum Sum `json:"checksum"`
}

// encode gives the file of the entry, and its sum.
func (e *entry) encode() ([]byte, Sum, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, Sum{}, fmt.Errorf("sink %s: entry %d: %w", e.Unit, e.Seq, err)
	}
	b, sum := sealed.Seal(b[:len(b)-1])
	return b, sum, nil
}

// decodeEntry reads what encode wrote. Whatever else it is given is an error,
// and path is in it.
func decodeEntry(path string, b []byte) (*entry, Sum, error) {
	damaged := func(format string, args ...any) (*entry, Sum, error) {
		return nil, Sum{}, &DamagedError{Path: path, Reason: fmt.Sprintf(format, args...)}
	}
	whole, sum, err := sealed.Open(b)
	switch {
	case errors.Is(err, sealed.ErrShort):
		return damaged("%d bytes are no entry", len(b))
	case err != nil:
		return damaged("its checksum is not that of its bytes")
	}
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(whole, &head); err != nil {
		return damaged("%v", err)
	}
	if head.Format > EntryFormat {
		return nil, Sum{}, &FormatError{Path: path, Format: head.Format}
	}
	e := new(entry)
	if err := json.Unmarshal(whole, e); err != nil {
		return damaged("%v", err)
	}
	// One meaning has one form, so what is read is what was written.
	if again, _, err := e.encode(); err != nil || !bytes.Equal(again, b) {
		return damaged("it is not in the form in which entries are written")
	}
	if err := e.check(); err != nil {
		return damaged("%v", err)
	}
	return e, sum, nil
}

// check says what is wrong with an entry by itself.
func (e *entry) check() error {
	switch {
	case e.Format != EntryFormat:
		return fmt.Errorf("format %d", e.Format)
	case e.Kind != kindFence && e.Kind != kindEpoch:
		return fmt.Errorf("kind %q", e.Kind)
	case e.Seq == 0 || e.Term == 0:
		return fmt.Errorf("number %d of term %d", e.Seq, e.Term)
	case e.Kind == kindEpoch && e.Memory == nil:
		return fmt.Errorf("an epoch without a memory")
	case e.Kind == kindFence && len(e.Files) > 0:
		return fmt.Errorf("a fence with files")
	}
	names := make(map[string]bool, len(e.Files))
	for _, f := range e.Files {
		if err := f.check(); err != nil {
			return err
		}
		if names[f.Name] {
			return fmt.Errorf("file %q is named twice", f.Name)
		}
		names[f.Name] = true
	}
	return nil
}

func (f *File) check() error {
	switch {
	case !strings.HasPrefix(f.Name, dataFolder) || strings.Contains(f.Name, "//") || slices.Contains(strings.Split(f.Name, "/"), ".."):
		return fmt.Errorf("file name %q", f.Name)
	case f.Partition < 0 || f.Partition >= f.Of:
		return fmt.Errorf("file %s: partition %d of %d", f.Name, f.Partition, f.Of)
	case f.Rows < 1 || f.Size < f.Rows:
		return fmt.Errorf("file %s: %d rows in %d bytes", f.Name, f.Rows, f.Size)
	case f.Framing != framingLines && f.Framing != framingRecords:
		return fmt.Errorf("file %s: framing %q is not known", f.Name, f.Framing)
	}
	return nil
}

// place is how far a log has been read.
type place struct {
	seq  uint64
	sum  Sum
	term uint64
	run  string
	mem  *Memory
}

func (e *entry) place(sum Sum) place {
	return place{seq: e.Seq, sum: sum, term: e.Term, run: e.Run, mem: e.Memory}
}

// epoch is the newest one of the log, 0 if there is none.
func (p place) epoch() uint64 {
	if p.mem == nil {
		return 0
	}
	return p.mem.Epoch
}

// follows says what is wrong with e as the entry after p.
func (p place) follows(e *entry) error {
	switch {
	case e.Seq != p.seq+1:
		return fmt.Errorf("it says that it is number %d", e.Seq)
	case e.Prev != p.sum && !sabotage.On("sink-entry-chain-unchecked"):
		return fmt.Errorf("it was not written after the entry before it, which is another one now")
	case e.Term < p.term:
		return fmt.Errorf("its term %d comes after term %d", e.Term, p.term)
	case e.Kind == kindEpoch && e.Memory.Epoch <= p.epoch():
		return fmt.Errorf("epoch %d comes after epoch %d", e.Memory.Epoch, p.epoch())
	case e.Kind == kindFence && (e.Memory == nil) != (p.mem == nil), e.Kind == kindFence && p.mem != nil && *e.Memory != *p.mem:
		return fmt.Errorf("a fence has changed the memory")
	}
	return nil
}

// checkName accepts what can be an element of a path anywhere.
func checkName(what, name string) error {
	ok := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_' || r == '.'
	}
	if name == "" || len(name) > 100 || name[0] == '.' || strings.ContainsFunc(name, func(r rune) bool { return !ok(r) }) ||
		strings.Contains(name, ".tmp.") || name == rootsFolder {
		return fmt.Errorf("sink: %s %q: %w: use 1 to 100 letters, digits, '-', '_' and '.', not '.' first and not %q", what, name, ErrMisuse, rootsFolder)
	}
	return nil
}

// escape gives an output's name as one element of a path.
func escape(output string) (string, error) {
	if output == "" || !utf8.ValidString(output) {
		return "", fmt.Errorf("sink: output %q: %w: a name is text, and not empty", output, ErrMisuse)
	}
	var b strings.Builder
	for _, c := range []byte(output) {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String(), nil
}

// damage is the error of an entry that does not follow.
func (p place) damage(folder string, e *entry) error {
	if err := p.follows(e); err != nil {
		return &DamagedError{Path: folder + seqName(p.seq+1), Reason: err.Error()}
	}
	return nil
}

// belongs sees that an entry is of this log.
func (e *entry) belongs(folder, root, unit string) error {
	if e.Root != root || e.Unit != unit {
		return &DamagedError{Path: folder + seqName(e.Seq), Reason: fmt.Sprintf("it is of root %q and unit %q", e.Root, e.Unit)}
	}
	return nil
}
