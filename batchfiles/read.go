package batchfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/framing"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// Batch is a complete batch in a store.
type Batch struct {
	store  vfs.Store
	folder string
	doc    *document
}

// Open opens the batch in a folder of the store. One that is not complete is
// ErrUnfinished, also if the folder does not exist.
func Open(ctx context.Context, store vfs.Store, folder string) (*Batch, error) {
	path := folder + "/" + successName
	b, err := store.Get(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no %s (%w)", ErrUnfinished, path, err)
	}
	if err != nil {
		return nil, &FileError{Path: path, Doing: "read", Err: err}
	}
	doc, err := decode(path, b, true)
	if err != nil {
		return nil, err
	}
	return &Batch{store: store, folder: folder, doc: doc}, nil
}

// Form is the form of the parts.
func (b *Batch) Form() Form { return b.doc.Form }

// Schema says how records are stored; the zero Schema for text.
func (b *Batch) Schema() codec.Schema { return b.doc.Schema }

// Parts describes the parts; part i is the file part-<i> of the folder. The slice is not
// to be changed.
func (b *Batch) Parts() []Part { return b.doc.Parts }

// Records is the dataset of a batch of records, one partition for each part, in the order
// in which they were saved. Parts are read whenever the dataset is computed, one at a
// time by each worker, and seen to be whole before the first record comes.
//
// c is the codec of T as for SaveRecords, nil for that of codec.For. Records of an older
// form of T are read as the state of an operator would be: directly where nothing is
// lost, else by steps (see codec.Reader); what cannot be read is a *codec.SchemaError.
func Records[T any](ctx context.Context, store vfs.Store, folder string, c codec.Codec[T], steps ...codec.Migration) (*rdd.RDD[T], error) {
	b, err := Open(ctx, store, folder)
	if err != nil {
		return nil, err
	}
	if b.doc.Form != Binary {
		return nil, fmt.Errorf("read %s: it holds %s, not %s: use Lines", folder, b.doc.Form, Binary)
	}
	c, _, err = codec.Use(c)
	if err == nil {
		c, err = codec.Reader(b.doc.Schema, c, steps...)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", folder, err)
	}
	return dataset(b, func(t *rdd.Task, row []byte) (T, error) {
		v, err := c.Decode(row)
		return v, t.Fail("read "+folder, nil, err)
	}), nil
}

// Lines is the dataset of the lines of a batch of text, without their ends. See Records.
func Lines(ctx context.Context, store vfs.Store, folder string) (*rdd.RDD[string], error) {
	b, err := Open(ctx, store, folder)
	if err != nil {
		return nil, err
	}
	if b.doc.Form != Text {
		return nil, fmt.Errorf("read %s: it holds %s, not %s: use Records", folder, b.doc.Form, Text)
	}
	return dataset(b, func(_ *rdd.Task, row []byte) (string, error) { return string(row), nil }), nil
}

// dataset gives the rows of a batch. A row's bytes are valid for the call.
func dataset[T any](b *Batch, row func(t *rdd.Task, row []byte) (T, error)) *rdd.RDD[T] {
	return rdd.New(b.doc.Of, func(t *rdd.Task, emit func(T) error) error {
		name := partName(t.Partition)
		t.Origin = rdd.Origin{Stream: b.folder, Partition: name}
		data, err := b.part(t.Ctx, t.Partition)
		if err != nil {
			return err
		}
		n, err := framing.Each(b.doc.Form == Text, data, func(n int64, bytes []byte) error {
			if n&255 == 0 && t.Ctx.Err() != nil {
				return context.Cause(t.Ctx)
			}
			t.Origin.Offset = n
			v, err := row(t, bytes)
			if err != nil {
				return err
			}
			return emit(v)
		})
		if errors.Is(err, framing.ErrFraming) {
			return &DamagedError{Path: b.folder + "/" + name, Reason: err.Error()}
		}
		if want := b.doc.Parts[t.Partition].Rows; err == nil && b.doc.Form == Binary && n != want {
			return &DamagedError{Path: b.folder + "/" + name, Reason: fmt.Sprintf("it has %d rows, not %d", n, want)}
		}
		return err
	}).Named("read " + b.folder)
}

// part reads a part and sees that it is what was saved.
func (b *Batch) part(ctx context.Context, i int) ([]byte, error) {
	path, p := b.folder+"/"+partName(i), b.doc.Parts[i]
	data, err := b.store.Get(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &DamagedError{Path: path, Reason: "it is missing"}
	}
	if err != nil {
		return nil, &FileError{Path: path, Doing: "read", Err: err}
	}
	if why := p.differs(Part{Size: int64(len(data)), Sum: sink.SumOf(data)}); why != "" && !sabotage.On("save-sum-not-checked") {
		return nil, &DamagedError{Path: path, Reason: why}
	}
	return data, nil
}
