package codec

import (
	"bytes"
	"cmp"
	"reflect"
	"strings"
	"unsafe"

	"github.com/statemill/statemill/internal/sabotage"
)

// compareFor picks the fastest function that orders keys as their canonical
// bytes. None of them encodes anything.
func compareFor[K comparable](t reflect.Type, ops []keyOp) func(a, b K) int {
	for _, plain := range []any{strings.Compare, cmp.Compare[int], cmp.Compare[int64], cmp.Compare[uint64]} {
		if f, ok := plain.(func(a, b K) int); ok && !sabotage.On("key-order") {
			return f
		}
	}
	switch {
	case sabotage.On("key-order"):
		return func(a, b K) int {
			return cmp.Compare(hashOps(ops, unsafe.Pointer(&a)), hashOps(ops, unsafe.Pointer(&b)))
		}
	case t.Kind() == reflect.String:
		return func(a, b K) int {
			return strings.Compare(*(*string)(unsafe.Pointer(&a)), *(*string)(unsafe.Pointer(&b)))
		}
	}
	return func(a, b K) int { return compareOps(ops, unsafe.Pointer(&a), unsafe.Pointer(&b)) }
}

// compareOps walks both keys at once. A string is compared as it is: the
// escaping was chosen so that escaped strings are ordered alike.
func compareOps(ops []keyOp, a, b unsafe.Pointer) int {
	for i := range ops {
		op := &ops[i]
		p, q := unsafe.Add(a, op.off), unsafe.Add(b, op.off)
		c := 0
		switch op.kind {
		case opBool:
			c = cmp.Compare(*(*uint8)(p), *(*uint8)(q))
		case opString:
			c = strings.Compare(*(*string)(p), *(*string)(q))
		case opBytes:
			c = bytes.Compare(unsafe.Slice((*byte)(p), op.n), unsafe.Slice((*byte)(q), op.n))
		case opLoop:
			for j := range op.n {
				d := uintptr(j) * op.stride
				if c = compareOps(op.body, unsafe.Add(p, d), unsafe.Add(q, d)); c != 0 {
					return c
				}
			}
		default:
			x, _ := orderBits(op.kind, p)
			y, _ := orderBits(op.kind, q)
			c = cmp.Compare(x, y)
		}
		if c != 0 {
			return c
		}
	}
	return 0
}
