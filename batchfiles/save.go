package batchfiles

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
	"github.com/zeebo/xxh3"
)

// saving is one save of one batch. part may be called from several goroutines at once,
// for different parts.
type saving struct {
	store  vfs.Store
	folder string
	doc    *document
	done   *document // its _SUCCESS, if that is there already
}

// begin says what is to be in a folder, and fails if something else is.
func begin(ctx context.Context, store vfs.Store, folder string, doc *document) (*saving, error) {
	doc.Format = Format
	if err := doc.check(false); err != nil {
		return nil, fmt.Errorf("save %s: %w", folder, err)
	}
	s := &saving{store: store, folder: folder, doc: doc}
	done, err := s.read(ctx, successName)
	if done != nil || err != nil {
		s.done = done
		return s, err
	}
	return s, s.put(ctx, partsName, doc)
}

func (s *saving) path(name string) string { return s.folder + "/" + name }

// read gives a document of the folder, nil if it is not there, and fails if it is of
// another batch.
func (s *saving) read(ctx context.Context, name string) (*document, error) {
	path := s.path(name)
	b, err := s.store.Get(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &FileError{Path: path, Doing: "read", Err: err}
	}
	there, err := decode(path, b, name == successName)
	if err != nil {
		return nil, err
	}
	if why := s.doc.differs(there); why != "" && (name != partsName || !sabotage.On("save-parts-not-fixed")) {
		return nil, &DiffersError{Path: path, Reason: why}
	}
	return there, nil
}

// put makes a document. One that is there already is kept if it says the same.
func (s *saving) put(ctx context.Context, name string, doc *document) error {
	b, err := doc.encode()
	if err != nil {
		return err
	}
	path := s.path(name)
	err = s.store.PutIfAbsent(ctx, path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrExist):
		return &FileError{Path: path, Doing: "save", Err: err}
	}
	there, err := s.read(ctx, name)
	if err != nil {
		return err
	}
	if there == nil {
		return &FileError{Path: path, Doing: "save", Err: fmt.Errorf("it was there, and is gone: %w", fs.ErrNotExist)}
	}
	return s.sameParts(doc.Parts, there.Parts)
}

func (s *saving) sameParts(parts, there []Part) error {
	for i, p := range parts {
		if err := s.same(i, p, there[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *saving) same(i int, p, there Part) error {
	if why := p.differs(there); why != "" && !sabotage.On("save-part-not-compared") {
		return &DiffersError{Path: s.path(partName(i)), Reason: why}
	}
	return nil
}

// part saves a part. write gives its rows to w, the same each time it is called, and
// returns how many they are; its error is returned as it is.
func (s *saving) part(ctx context.Context, i int, write func(w io.Writer) (rows int64, err error)) (Part, error) {
	path := s.path(partName(i))
	var p Part
	var own, disk error // what write said, and what the store did
	fill := func(w io.Writer) (err error) {
		sum := newSummer(w)
		own, disk = nil, nil
		if p.Rows, err = write(sum); err != nil {
			own, disk = err, sum.err
			return err
		}
		p.Size, p.Sum, err = sum.end()
		return err
	}
	if s.done != nil {
		// Nothing is written beside a batch that readers have, not even for a moment.
		if err := fill(io.Discard); err != nil {
			return Part{}, err
		}
		return p, s.same(i, p, s.done.Parts[i])
	}
	err := s.store.PutIfAbsent(ctx, path, fill)
	switch {
	case err == nil:
		return p, nil
	case own != nil && disk == nil:
		return Part{}, own
	case !errors.Is(err, fs.ErrExist):
		return Part{}, &FileError{Path: path, Doing: "save", Err: err}
	}
	there, err := s.there(ctx, path)
	if err != nil {
		return Part{}, err
	}
	return p, s.same(i, p, there)
}

// there describes a part that is there, but for its rows.
func (s *saving) there(ctx context.Context, path string) (p Part, err error) {
	o, err := s.store.Stat(ctx, path)
	if err == nil {
		sum := newSummer(io.Discard)
		if _, err = io.Copy(sum, vfs.NewReader(ctx, s.store, o)); err == nil {
			p.Size, p.Sum, err = sum.end()
		}
	}
	if err != nil {
		return Part{}, &FileError{Path: path, Doing: "read", Err: err}
	}
	return p, nil
}

// finish says that all parts are there.
func (s *saving) finish(ctx context.Context, parts []Part) error {
	if s.done != nil {
		return nil
	}
	// What broken-off puts have left looks like parts to readers that know no _SUCCESS.
	left, err := s.store.Leftovers(ctx, s.folder+"/")
	if err != nil {
		return &FileError{Path: s.folder, Doing: "list", Err: err}
	}
	for _, l := range left {
		if err := s.store.Delete(ctx, l.Name); err != nil {
			return &FileError{Path: l.Name, Doing: "delete", Err: err}
		}
	}
	doc := *s.doc
	doc.Parts = parts
	return s.put(ctx, successName, &doc)
}

// summer writes to a writer, in large pieces, and adds up what passes.
type summer struct {
	*bufio.Writer
	under io.Writer
	h     *xxh3.Hasher
	size  int64
	err   error // of under
}

func newSummer(w io.Writer) *summer {
	s := &summer{under: w, h: xxh3.New()}
	s.Writer = bufio.NewWriterSize(writerFunc(s.pass), 64<<10)
	return s
}

func (s *summer) pass(p []byte) (n int, err error) {
	_, _ = s.h.Write(p)
	s.size += int64(len(p))
	n, err = s.under.Write(p)
	s.err = err
	return n, err
}

func (s *summer) end() (size int64, sum [16]byte, err error) {
	err = s.Flush()
	return s.size, s.h.Sum128().Bytes(), err
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
