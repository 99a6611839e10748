package batchfiles

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
)

// SaveText saves the records of r in a folder of the store, one part for each of its
// partitions, each record as a line: what text appends, with "\n" after it. text depends
// on its argument alone and keeps no part of dst; it is called from several goroutines
// at once. nil means fmt.Append.
//
// It runs as an action of r, on r's executor. A failure of text is that of the record.
func SaveText[T any](ctx context.Context, store vfs.Store, folder string, r *rdd.RDD[T], text func(dst []byte, v T) []byte) error {
	if text == nil {
		text = func(dst []byte, v T) []byte { return fmt.Append(dst, v) }
	}
	return save(ctx, store, folder, r, &document{Form: Text}, func(dst []byte, v T) ([]byte, error) {
		return append(text(dst, v), '\n'), nil
	})
}

// SaveRecords saves the records of r in a folder of the store, one part for each of its
// partitions, by a codec; nil means that of codec.For. See SaveText for the rest, and
// Records for reading them.
func SaveRecords[T any](ctx context.Context, store vfs.Store, folder string, r *rdd.RDD[T], c codec.Codec[T]) error {
	c, schema, err := codec.Use(c)
	if err != nil {
		return fmt.Errorf("save %s: %w", folder, err)
	}
	return save(ctx, store, folder, r, &document{Form: Binary, Schema: schema}, func(dst []byte, v T) ([]byte, error) {
		// The length is known afterwards: most rows have one of a single byte.
		at := len(dst)
		out, err := c.Append(append(dst, 0), v)
		if err != nil {
			return dst, err
		}
		n := len(out) - at - 1
		if n < 0x80 {
			out[at] = byte(n)
			return out, nil
		}
		var head [binary.MaxVarintLen64]byte
		k := binary.PutUvarint(head[:], uint64(n))
		out = append(out, head[1:k]...) // as much longer as is needed
		copy(out[at+k:], out[at+1:at+1+n])
		copy(out[at:], head[:k])
		return out, nil
	})
}

// save writes all partitions, on the executor of r, and then what makes them a batch.
func save[T any](ctx context.Context, store vfs.Store, folder string, r *rdd.RDD[T], doc *document, encode func(dst []byte, v T) ([]byte, error)) error {
	if r == nil {
		return errors.New("save of a nil rdd")
	}
	if err := r.Materialize(ctx); err != nil {
		return err
	}
	doc.Of = r.NumPartitions()
	s, err := begin(ctx, store, folder, doc)
	if err != nil {
		return err
	}
	parts := make([]Part, doc.Of)
	err = r.Executor().RunTasks(ctx, "save "+folder, doc.Of, func(t *rdd.Task) error {
		p, err := s.part(t.Ctx, t.Partition, func(w io.Writer) (int64, error) {
			out := &rowWriter[T]{t: t, w: w, encode: encode, name: "save " + folder}
			// A panic must not pass through the store, which has a file open.
			err := rdd.Protect(t, func(t *rdd.Task) error { return out.fill(r) })
			if sabotage.On("save-truncates") {
				err = nil
			}
			return out.rows, err
		})
		parts[t.Partition] = p
		return err
	})
	if err != nil {
		return err
	}
	return s.finish(ctx, parts)
}

// rowWriter is where the rows of a partition leave for a part: an edge of the guarded
// mode.
type rowWriter[T any] struct {
	t      *rdd.Task
	w      io.Writer
	encode func(dst []byte, v T) ([]byte, error)
	name   string
	rows   int64

	buf    []byte // the rows that are not written yet
	staged int64
}

func (o *rowWriter[T]) fill(r *rdd.RDD[T]) error {
	if o.t.Guard != nil {
		o.t.Guard.Enlist(o)
	}
	return r.Compute(o.t, o.put)
}

func (o *rowWriter[T]) put(v T) error {
	b, err := o.encode(o.buf, v)
	if err != nil {
		return o.t.Fail(o.name, nil, err)
	}
	o.buf = b
	o.staged++
	if o.t.Guard != nil {
		return nil
	}
	return o.Flush()
}

// Flush implements rdd.Edge.
func (o *rowWriter[T]) Flush() error {
	if o.staged == 0 {
		return nil
	}
	_, err := o.w.Write(o.buf)
	o.rows += o.staged
	o.Drop()
	return err
}

// Drop implements rdd.Edge.
func (o *rowWriter[T]) Drop() { o.buf, o.staged = o.buf[:0], 0 }
