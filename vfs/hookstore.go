package vfs

import (
	"context"
	"io"
)

// hookStore lets an around see every call to a store, and the bytes on their
// way into PutIfAbsent as writes.
type hookStore struct {
	s Store
	h around
}

func (s hookStore) do(kind Kind, name string, do func() error) error {
	return s.h.around(Call{Kind: kind, Path: name}, do, nil)
}

func (s hookStore) PutIfAbsent(ctx context.Context, name string, write func(io.Writer) error) error {
	return s.do(KindPut, name, func() error {
		return s.s.PutIfAbsent(ctx, name, func(w io.Writer) error { return write(hookWriter{s.h, name, w}) })
	})
}

type hookWriter struct {
	h    around
	name string
	w    io.Writer
}

func (w hookWriter) Write(p []byte) (int, error) { return hookWrite(w.h, w.name, p, w.w) }

func (s hookStore) Get(ctx context.Context, name string) (b []byte, err error) {
	err = s.do(KindGet, name, func() error { b, err = s.s.Get(ctx, name); return err })
	return b, err
}

func (s hookStore) ReadAt(ctx context.Context, name string, p []byte, off int64) (n int, err error) {
	c := Call{Kind: KindReadAt, Path: name, Bytes: len(p)}
	err = s.h.around(c, func() error { n, err = s.s.ReadAt(ctx, name, p, off); return err }, nil)
	return n, err
}

func (s hookStore) Stat(ctx context.Context, name string) (o Object, err error) {
	err = s.do(KindStat, name, func() error { o, err = s.s.Stat(ctx, name); return err })
	return o, err
}

func (s hookStore) List(ctx context.Context, folder string) (list []Object, err error) {
	err = s.do(KindList, folder, func() error { list, err = s.s.List(ctx, folder); return err })
	return list, err
}

func (s hookStore) Leftovers(ctx context.Context, folder string) (list []Leftover, err error) {
	err = s.do(KindList, folder, func() error { list, err = s.s.Leftovers(ctx, folder); return err })
	return list, err
}

func (s hookStore) Delete(ctx context.Context, name string) error {
	return s.do(KindDelete, name, func() error { return s.s.Delete(ctx, name) })
}

func (s hookStore) Lock(ctx context.Context, name, holder string) (io.Closer, error) {
	return hookLock(s.h, name, holder, func(name, holder string) (io.Closer, error) { return s.s.Lock(ctx, name, holder) })
}
