package codec

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/zeebo/xxh3"
)

// Key is the canonical encoding of keys of type K, built once by [KeyFor]. Two
// keys are equal exactly if their bytes are, and keys are ordered as their
// bytes. It is immutable and may be used from any goroutine.
//
// The bytes, which never change: signed integers big-endian with the sign bit
// flipped, unsigned ones big-endian; int, uint and uintptr take 8 bytes, other
// kinds their width; bools 0 or 1; floats big-endian, positive ones with the
// sign bit set, negative ones with all bits flipped, −0 as 0; a string that is
// the whole key as it is; a string inside an array or struct with 0x00 written
// as 0x00 0xFF, ended by 0x00 0x01; arrays and structs as their parts in order,
// blank fields left out.
type Key[K comparable] struct {
	ops []keyOp
	// raw: K is a string kind and the key is its bytes.
	raw   bool
	nan   bool // some part is a float
	hash  func(K) uint64
	cmp   func(a, b K) int
	clone func(K) K // nil: K holds no string
}

// KeyFor builds the key encoding of K. K must be a string, integer, bool or
// float kind, or an array or struct of these (unexported fields count like
// others); else the error is a *TypeError naming the field.
func KeyFor[K comparable]() (*Key[K], error) {
	t := reflect.TypeFor[K]()
	ops, err := compileKey(t)
	if err != nil {
		return nil, err
	}
	c := &Key[K]{ops: ops, raw: t.Kind() == reflect.String, nan: opsHold(ops, opFloat32, opFloat64)}
	c.hash = hashFor[K](t, ops)
	c.cmp = compareFor[K](t, ops)
	switch {
	case c.raw:
		c.clone = func(k K) K {
			s := strings.Clone(*(*string)(unsafe.Pointer(&k)))
			return *(*K)(unsafe.Pointer(&s))
		}
	case opsHold(ops, opString):
		c.clone = func(k K) K {
			cloneOps(ops, unsafe.Pointer(&k))
			return k
		}
	}
	return c, nil
}

// Append appends the canonical bytes of k to dst and returns the longer slice.
// It does not check for NaN; see [Key.Check].
func (c *Key[K]) Append(dst []byte, k K) []byte {
	if c.raw {
		return append(dst, *(*string)(unsafe.Pointer(&k))...)
	}
	return appendOps(dst, c.ops, unsafe.Pointer(&k))
}

// Decode returns the key whose canonical bytes are src, sharing no memory with
// it. Bytes that [Key.Append] does not write are ErrCorrupt.
func (c *Key[K]) Decode(src []byte) (K, error) {
	var k K
	if c.raw {
		s := string(src)
		return *(*K)(unsafe.Pointer(&s)), nil
	}
	rest, err := decodeOps(src, c.ops, unsafe.Pointer(&k))
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes after the key", ErrCorrupt, len(rest))
	}
	if err != nil {
		var zero K
		return zero, fmt.Errorf("codec: key of %s: %w", reflect.TypeFor[K](), err)
	}
	return k, nil
}

// NeedsCheck reports whether [Key.Check] can fail at all: K holds a float.
// Callers test it once and skip the check per record.
func (c *Key[K]) NeedsCheck() bool { return c.nan }

// Check returns ErrNaN if k holds a float that is not a number.
func (c *Key[K]) Check(k K) error {
	if c.nan && opsNaN(c.ops, unsafe.Pointer(&k)) {
		return ErrNaN
	}
	return nil
}

// Hash returns the stable 64-bit hash of k: xxh3 of its canonical bytes. It is
// the same in every process, on every machine, for ever.
func (c *Key[K]) Hash(k K) uint64 { return c.hash(k) }

// HashFunc returns the fastest function that computes [Key.Hash].
func (c *Key[K]) HashFunc() func(K) uint64 { return c.hash }

// Compare orders keys by their canonical bytes: −1, 0 or 1.
func (c *Key[K]) Compare(a, b K) int { return c.cmp(a, b) }

// Clone returns k with strings of its own, so that it pins no input buffer.
func (c *Key[K]) Clone(k K) K {
	if c.clone == nil || sabotage.On("clone-key") {
		return k
	}
	return c.clone(k)
}

// hashOps hashes keys that have no faster way, on a stack buffer for keys of up
// to 128 canonical bytes.
func hashOps(ops []keyOp, p unsafe.Pointer) uint64 {
	var buf [128]byte
	return xxh3.Hash(appendOps(buf[:0], ops, p))
}
