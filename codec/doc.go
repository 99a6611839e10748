// Package codec turns keys and states into bytes and back, and says what those
// bytes mean when the program's types have changed since.
//
// [Codec] encodes values: [For] has built-in forms for integers, floats, bools,
// strings, byte slices and times, and carries everything else in MessagePack,
// by a plan that is compiled once per type; [As] stores a type as another one, [Use]
// checks a codec of the user's own. [Key] is the one canonical encoding of keys; hash, order and files all
// use it. [Schema] describes what is stored without naming a Go type: it has a
// fingerprint, prints stored bytes as JSON, and [Compare] tells two apart.
// [Reader] decodes the values of an old schema, by [Migration]s where needed.
//
// Invariants:
//   - Equal values have equal bytes: maps are sorted, times are in UTC, −0 in a
//     key is 0. So a redone batch writes the same file.
//   - What [For] accepts comes back as it went in. A type that would lose
//     something (unexported fields, funcs, channels, interfaces) is refused when
//     the codec is built, with the field named.
//   - Decoding or printing damaged or hostile bytes is an error that costs
//     memory in proportion to the input, never a panic. Input must be consumed
//     entirely.
//   - The hash of a key, the bytes of both encodings, fingerprints and the JSON
//     of schemas never change.
//   - What a schema calls compatible is read by the new type without loss; what
//     prints is what decodes.
//
// # Changed types
//
// What [Compare] says of a change between the type whose values are stored and
// the type of the program. Incompatible ones need a migration, or the old type
// back; nothing is ever dropped or set to zero without a word.
//
//	change of a value's type                     class
//	type, package or module renamed, types       same
//	  split or merged, int ↔ int64
//	fields moved (stored by name)                same
//	omitempty added or removed                   same
//	field added                                  compatible: stored values read it as zero
//	field renamed, with the tag alias:OLD        compatible
//	integer widened, also uint8 … uint32 into    compatible (without the change of sign
//	  a wider int                                  where the integer is the whole value)
//	float32 → float64 inside a struct, slice …   compatible
//	T → *T, [n]T → []T inside MessagePack        compatible
//	field removed                                incompatible: its values would be lost
//	field renamed without an alias               incompatible: one removed, one added
//	two old fields read into one by an alias     incompatible
//	integer narrowed, any other kind             incompatible
//	as_array: a field added, removed, moved      incompatible
//	another codec, or own codec whose schema     incompatible
//	  changed under one ID
//	inside a type that encodes itself            not seen: put a version into its bytes
//
// Keys are placed by their bytes, so every change of a key's type but a rename
// of types, or of fields by an alias, is incompatible and has no migration.
//
// An alias must stay for as long as values under the old name may be stored: a
// schema says what its own values look like, not what older files hold.
//
// The package frames and checksums nothing; files do that. It does not decide
// when a change is refused or a migration is run; the checkpoint does.
package codec
