package staterdd

import (
	"math/bits"
	"reflect"
	"slices"
	"time"

	"github.com/statemill/statemill/statemap"
)

// Footprint estimates the memory that keys and states of an operator point to beyond the slots
// and key bytes that statemap.Map.HeapBytes counts. It belongs to one goroutine.
type Footprint[K comparable, S any] struct {
	key, state bool // values of the type point to memory
	rng        uint64
}

// NewFootprint looks at the types once.
func NewFootprint[K comparable, S any]() *Footprint[K, S] {
	k := reflect.TypeFor[K]()
	return &Footprint[K, S]{
		// A string key lies in the map's own arena.
		key:   k.Kind() != reflect.String && points(k, nil),
		state: points(reflect.TypeFor[S](), nil),
		rng:   0x9e3779b97f4a7c15,
	}
}

// sampled is how many keys of a partition an estimate looks at.
const sampled = 512

// PerKey gives the mean number of bytes that a key of the version points to, from a sample of at
// most 512 keys. It is 0 for types that point to nothing. Memory that several keys share is
// counted for each of them.
func (f *Footprint[K, S]) PerKey(m *statemap.Map[K, S]) float64 {
	slots := uint64(m.Slots())
	if !f.key && !f.state || slots == 0 {
		return 0
	}
	n, total := 0, int64(0)
	look := func(slot uint64) {
		k, s, _, live := m.SlotAt(uint32(slot))
		if !live {
			return
		}
		n++
		if f.key {
			total += weigh(reflect.ValueOf(&k).Elem())
		}
		if f.state {
			total += weigh(reflect.ValueOf(&s).Elem())
		}
	}
	if slots <= sampled {
		for i := range slots {
			look(i)
		}
	} else {
		for try := 0; try < 4*sampled && n < sampled; try++ {
			f.rng = f.rng*6364136223846793005 + 1442695040888963407
			hi, _ := bits.Mul64(f.rng, slots)
			look(hi)
		}
	}
	if n == 0 {
		return 0
	}
	return float64(total) / float64(n)
}

// points says whether values of a type hold pointers to memory of their own.
func points(t reflect.Type, seen []reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface:
		return true
	case reflect.Array:
		return t.Len() > 0 && points(t.Elem(), seen)
	case reflect.Struct:
		if t == timeType || slices.Contains(seen, t) {
			return false // a time's zone is shared by all
		}
		seen = append(seen, t)
		for i := range t.NumField() {
			if points(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

var timeType = reflect.TypeFor[time.Time]()

// weigh gives the bytes of the heap that v points to.
func weigh(v reflect.Value) int64 {
	w := weigher{left: mostWeighed}
	w.walk(v)
	return w.bytes
}

// mostWeighed bounds the values looked at in one state; what a larger one holds beyond is taken
// to be like what was seen.
const mostWeighed = 10_000

type weigher struct {
	bytes int64
	left  int
}

func (w *weigher) walk(v reflect.Value) {
	if w.left--; w.left < 0 || !points(v.Type(), nil) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		w.bytes += allocated(int64(v.Len()), false)
	case reflect.Slice:
		if v.Cap() > 0 {
			e := v.Type().Elem()
			w.bytes += allocated(int64(v.Cap())*int64(e.Size()), points(e, nil))
			w.elements(v)
		}
	case reflect.Array:
		w.elements(v)
	case reflect.Struct:
		for i := range v.NumField() {
			w.walk(v.Field(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			e := v.Type().Elem()
			w.bytes += allocated(int64(e.Size()), points(e, nil))
			w.walk(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			e := v.Elem()
			if e.Kind() != reflect.Pointer && e.Kind() != reflect.Map {
				w.bytes += allocated(int64(e.Type().Size()), points(e.Type(), nil))
			}
			w.walk(e)
		}
	case reflect.Map:
		w.entries(v)
	}
}

// elements adds what the elements point to; of very many the first ones speak for the others.
func (w *weigher) elements(v reflect.Value) {
	if !points(v.Type().Elem(), nil) {
		return
	}
	before, n := w.bytes, v.Len()
	for i := range n {
		if w.left <= 0 {
			w.bytes += (w.bytes - before) * int64(n-i) / int64(max(i, 1))
			return
		}
		w.walk(v.Index(i))
	}
}

// entries adds a map: its groups of eight slots, filled to seven eighths at most, and what keys
// and elements point to.
func (w *weigher) entries(v reflect.Value) {
	if v.IsNil() {
		return
	}
	n := int64(v.Len())
	kt, et := v.Type().Key(), v.Type().Elem()
	slot := align(int64(kt.Size()), et) + int64(et.Size())
	slot = (slot + 7) &^ 7
	pointers := points(kt, nil) || points(et, nil)
	const header, table = 48, 48
	w.bytes += header
	switch {
	case n == 0:
	case n <= 8:
		w.bytes += allocated(8+8*slot, pointers)
	default:
		room := int64(16)
		for room*7/8 < n {
			room *= 2
		}
		tables := max(1, room/1024)
		// Beyond one table of 1024 slots each one grows by itself, to seven tenths on the average.
		if tables > 1 {
			room = n * 10 / 7
		}
		w.bytes += tables*table + room/8*(8+8*slot)
	}
	if !pointers {
		return
	}
	before, seen := w.bytes, int64(0)
	for each := v.MapRange(); each.Next(); seen++ {
		if w.left <= 0 {
			w.bytes += (w.bytes - before) * (n - seen) / max(seen, 1)
			return
		}
		w.walk(each.Key())
		w.walk(each.Value())
	}
}

func align(n int64, next reflect.Type) int64 {
	a := int64(next.Align())
	return (n + a - 1) / a * a
}

// allocated gives the memory that an allocation of n bytes takes: Go's size classes.
func allocated(n int64, pointers bool) int64 {
	switch {
	case n == 0:
		return 0
	case n < 16 && !pointers: // several share a block of 16
		return 16 / (16 / n)
	case n > 512 && n <= sizeClasses[len(sizeClasses)-1] && pointers:
		n += 8 // a header says where the pointers are
	}
	if n > sizeClasses[len(sizeClasses)-1] {
		return (n + 8191) &^ 8191
	}
	i, _ := slices.BinarySearch(sizeClasses[:], n)
	return sizeClasses[i]
}

// sizeClasses are those of Go's allocator.
var sizeClasses = [...]int64{
	8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448, 480, 512,
	576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864, 5376, 6144,
	6528, 6784, 6912, 8192, 9472, 9728, 10240, 10880, 12288, 13568, 14336, 16384, 18432, 19072, 20480, 21760, 24576, 27264,
	28672, 32768,
}
