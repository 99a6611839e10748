// Package timeout finds the keys that are due without looking at the others.
package timeout

import "iter"

// Index holds hints: which slots may be due, and when.
type Index struct{ width int64 }

// NewIdle returns an index with one bit a slot.
func NewIdle(width int64) *Index { return &Index{width: width} }

// NewDeadline returns an index with a bucket number a slot.
func NewDeadline(width int64) *Index { return &Index{width: width} }

// Add stages a hint.
func (x *Index) Add(slot uint32, due int64) {}

// Due visits every slot that may be due at now.
func (x *Index) Due(now int64, visit func(slot uint32) (due int64, live bool)) {}

// Commit makes what is staged part of the index.
func (x *Index) Commit() {}

// Abort drops what is staged.
func (x *Index) Abort() {}

// Rebuild empties the index.
func (x *Index) Rebuild() {}

// Bytes is the memory held.
func (x *Index) Bytes() int64 { return 0 }

// Next is a lower bound of the earliest due time.
func (x *Index) Next() (due int64, ok bool) { return 0, false }

// Verify checks the index against the live slots and their due times.
func (x *Index) Verify(live iter.Seq2[uint32, int64]) error { return nil }
