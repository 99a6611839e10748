// Package codec turns keys and states into bytes and back.
//
// [Codec] encodes values: [For] has built-in forms for integers, floats, bools,
// strings, byte slices and times, and carries everything else in MessagePack,
// by a plan that is compiled once per type. [Key] is the one canonical encoding
// of keys; hash, order and files all use it.
//
// Invariants:
//   - Equal values have equal bytes: maps are sorted, times are in UTC, −0 in a
//     key is 0. So a redone batch writes the same file.
//   - What [For] accepts comes back as it went in. A type that would lose
//     something (unexported fields, funcs, channels, interfaces) is refused when
//     the codec is built, with the field named.
//   - Decoding damaged or hostile bytes is an error that costs memory in
//     proportion to the input, never a panic. Input must be consumed entirely.
//   - The hash of a key and the bytes of both encodings never change.
//
// The package frames and checksums nothing; files do that.
package codec
