package sink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/statemill/statemill/internal/sabotage"
)

// filesTx is an epoch on its way into a unit of files.
type filesTx struct {
	unit   *Files
	epoch  uint64
	try    int
	folder string
	term   uint64

	mu    sync.Mutex // writers of parts
	parts map[Part]bool
	files []File
}

// Write makes the data file of a part, under a name that only this transaction
// uses.
func (t *filesTx) Write(ctx context.Context, p Part, rows Rows) error {
	if p.Target != framingLines && p.Target != framingRecords {
		return fmt.Errorf("target %q: %w: use sink.Lines or sink.Records", p.Target, ErrMisuse)
	}
	output, err := escape(p.Output)
	if err != nil {
		return err
	}
	if err := t.begin(p); err != nil {
		return err
	}
	some := errors.New("there is a row")
	if err := rows(func([]byte) error { return some }); !errors.Is(err, some) {
		return err // nil if the part is empty: then there is no file
	}
	f := File{
		Name:   dataFolder + output + "/" + u(t.epoch/1000) + "/" + strings.Join([]string{u(t.epoch), strconv.Itoa(p.Index), u(t.term), strconv.Itoa(t.try)}, "."),
		Output: p.Output, Partition: p.Index, Of: p.Of, Framing: p.Target,
	}
	write := func(w io.Writer) (err error) {
		s := newSummer(w)
		f.Rows, err = frame(p.Target, rows, s)
		if err != nil {
			return err
		}
		f.Size, f.Checksum, err = s.end()
		return err
	}
	name := t.folder + f.Name
	err = t.unit.store.PutIfAbsent(ctx, name, write)
	if errors.Is(err, fs.ErrExist) {
		err = t.readBack(ctx, name, &f, write)
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files = append(t.files, f)
	return nil
}

func u(n uint64) string { return strconv.FormatUint(n, 10) }

func (t *filesTx) begin(p Part) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parts[p] {
		return fmt.Errorf("%w: the part is written twice", ErrMisuse)
	}
	if t.parts == nil {
		t.parts = map[Part]bool{}
	}
	t.parts[p] = true
	return nil
}

// readBack looks at a data file whose name is taken: it is our own if an answer
// was lost.
func (t *filesTx) readBack(ctx context.Context, name string, f *File, write func(io.Writer) error) error {
	if err := write(io.Discard); err != nil {
		return err
	}
	b, err := t.unit.store.Get(ctx, name)
	if err != nil {
		return err
	}
	if SumOf(b) != f.Checksum {
		return &DamagedError{Path: name, Reason: "another run of the same term wrote it: was the checkpoint root copied?"}
	}
	return nil
}

// Commit appends the epoch to the log.
func (t *filesTx) Commit(ctx context.Context, m Memory) error {
	f := t.unit
	if f.open != t || m.Epoch != t.epoch {
		return fmt.Errorf("%w: epoch %d is not open", ErrMisuse, m.Epoch)
	}
	if sabotage.On("sink-empty-epoch-skipped") && len(t.files) == 0 {
		f.open = nil
		return nil
	}
	if have := f.last.epoch(); m.Epoch <= have {
		return &EpochError{Unit: f.name, Epoch: m.Epoch, Have: have}
	}
	slices.SortFunc(t.files, func(a, b File) int {
		return cmp.Or(strings.Compare(a.Output, b.Output), cmp.Compare(a.Partition, b.Partition))
	})
	err := f.append(ctx, &entry{Kind: kindEpoch, Memory: &m, Files: t.files})
	if errors.Is(err, errTaken) {
		switch err = f.owned(); {
		case err != nil:
		case f.last.mem != nil && *f.last.mem == m:
			// An earlier try of this run, whose answer was lost; its files hold the same.
		case f.last.epoch() >= m.Epoch:
			err = &EpochError{Unit: f.name, Epoch: m.Epoch, Have: f.last.epoch()}
		default:
			err = fmt.Errorf("%w: this run has appended %s since it read the log", ErrUnknown, seqName(f.last.seq))
		}
	}
	if err == nil {
		f.open = nil
	}
	return err
}

// Abort gives the transaction up; its files stay, and no entry names them.
func (t *filesTx) Abort(context.Context) error {
	if t.unit.open == t {
		t.unit.open = nil
	}
	return nil
}
