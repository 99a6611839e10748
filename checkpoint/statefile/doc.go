// Package statefile writes and reads the files that keep the state of one
// partition of an operator: N.delta, what version N changed, and N.snapshot,
// all of version N.
//
// # Main types
//
// [Encoder] writes a file straight from a statemap version; one of them serves
// many files, on one goroutine at a time. [Loader] reads a file straight into a
// statemap version. Below them, and without Go types, [Reader] reads a file
// frame by frame and checks it, and [Block] decodes a [Frame] into rows of
// bytes: that is what tools use, and as frames are independent of one another,
// goroutines can decode them side by side. [Verify] reads a whole file and
// keeps nothing.
//
// # Guarantees
//
//   - Equal input gives equal bytes (for [Zstd]: with the same release of the
//     compressor), so a redone epoch writes the same delta. The content sum,
//     and with it the chain hash, does not depend on the compression at all.
//   - A damaged file is never read as good: every flipped bit, cut and added
//     byte is a [*CorruptError], or a [*FormatError] or [*MismatchError] where
//     the file is whole but not the one that was asked for. No rows of a frame
//     are given before its checksum was compared; whether the file is whole is
//     known at its end, so what was loaded counts only after that.
//   - Reading damaged or hostile bytes takes memory in proportion to the input:
//     lengths are believed piece by piece, and a block inflates to at most 64
//     times its size and 4 KiB.
//   - Buffers are reused; nothing is allocated per record but what keys and
//     states themselves need.
//   - Old formats are read for ever: see the list in format.go, and testdata.
//
// # What it does not do
//
// It opens, names, syncs and deletes no files, decides nothing about versions,
// and knows the store's layout as little as the Go type of a state.
package statefile
