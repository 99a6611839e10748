package staterdd

import (
	"reflect"
	"slices"
	"time"

	"github.com/statemill/statemill/statemap"
)

// Footprint keeps the sum of the memory that keys and states of an operator point to beyond the
// slots and key bytes that statemap.Map.HeapBytes counts. Every key counts with its own size: the
// few large ones among many small ones are what fills a machine, and a sample misses them. A
// version's sum is that of the version before, and the change of each key that was written. It
// belongs to one goroutine.
type Footprint[K comparable, S any] struct {
	key, state bool // values of the type point to memory
	parts      []footprints[K, S]
	types      map[reflect.Type]bool // points of the types seen
}

// footprints are the sums of a partition's newest version and of the one it was made from: if the
// newest is aborted the next one is made from that one too.
type footprints[K comparable, S any] struct{ newest, before footprint[K, S] }

type footprint[K comparable, S any] struct {
	of    *statemap.Map[K, S]
	bytes int64
	// rough: a state was too large to be looked at whole, so that its size differs from look to
	// look, and the sum drifts with the changes since all keys were added up.
	rough   bool
	changes int
}

// NewFootprint looks at the types once.
func NewFootprint[K comparable, S any]() *Footprint[K, S] {
	k := reflect.TypeFor[K]()
	return &Footprint[K, S]{
		// A string key lies in the map's own arena.
		key:   k.Kind() != reflect.String && points(k, nil),
		state: points(reflect.TypeFor[S](), nil),
		types: map[reflect.Type]bool{},
	}
}

// PerKey gives the mean number of bytes that a key of a partition's version m points to: the sum
// over its Len keys. It is 0, for nothing, for types that point to nothing. before is the version
// that m was made from, still held, or nil if there is none; if the sum of before is known, PerKey
// costs the keys that m wrote, else all keys. m must be sealed. Memory that several keys share is
// counted for each of them.
func (f *Footprint[K, S]) PerKey(partition int, before, m *statemap.Map[K, S]) float64 {
	if !f.key && !f.state || m.Len() == 0 {
		return 0
	}
	for len(f.parts) <= partition {
		f.parts = append(f.parts, footprints[K, S]{})
	}
	p := &f.parts[partition]
	if p.newest.of != m {
		if p.newest.of == before {
			p.before = p.newest
		}
		p.newest = f.after(p.before, before, m)
	}
	return float64(p.newest.bytes) / float64(m.Len())
}

// mostDrift is how many changes a key, on the average, a rough sum may have seen.
const mostDrift = 4

// after gives the sum of m from that of the version before, if it is known.
func (f *Footprint[K, S]) after(known footprint[K, S], before, m *statemap.Map[K, S]) footprint[K, S] {
	if before == nil || known.of != before || known.rough && known.changes > mostDrift*m.Len() {
		return f.all(m)
	}
	known.of = m
	err := m.Changes(func(c *statemap.Change[K, S]) bool {
		known.changes++
		if c.Was {
			known.bytes -= f.row(&c.Key, &c.Before, &known.rough)
		}
		if c.Is {
			known.bytes += f.row(&c.Key, &c.After, &known.rough)
		}
		return true
	})
	if err != nil || known.bytes < 0 {
		return f.all(m)
	}
	return known
}

// all adds up all keys.
func (f *Footprint[K, S]) all(m *statemap.Map[K, S]) footprint[K, S] {
	out := footprint[K, S]{of: m}
	for k, e := range m.All() {
		out.bytes += f.row(&k, &e.State, &out.rough)
	}
	return out
}

// row gives what a key and its state point to.
func (f *Footprint[K, S]) row(k *K, s *S, rough *bool) (n int64) {
	if f.key {
		n += f.weigh(reflect.ValueOf(k).Elem(), rough)
	}
	switch s := any(s).(type) { // the usual ones without reflection
	case *[]byte:
		return n + allocated(int64(cap(*s)), false)
	case *string:
		return n + allocated(int64(len(*s)), false)
	}
	if f.state {
		n += f.weigh(reflect.ValueOf(s).Elem(), rough)
	}
	return n
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

// weigh gives the bytes of the heap that v points to. rough is set if it was not looked at whole.
func (f *Footprint[K, S]) weigh(v reflect.Value, rough *bool) int64 {
	w := weigher{left: mostWeighed, types: f.types}
	w.walk(v)
	if w.left <= 0 {
		*rough = true
	}
	return w.bytes
}

// mostWeighed bounds the values looked at in one state; what a larger one holds beyond is taken
// to be like what was seen.
const mostWeighed = 10_000

type weigher struct {
	bytes int64
	left  int
	types map[reflect.Type]bool
}

// points is the function of that name, which is slow, asked once a type.
func (w *weigher) points(t reflect.Type) bool {
	if k := t.Kind(); k <= reflect.Complex128 {
		return false
	}
	p, known := w.types[t]
	if !known {
		p = points(t, nil)
		w.types[t] = p
	}
	return p
}

func (w *weigher) walk(v reflect.Value) {
	if w.left--; w.left < 0 || !w.points(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		w.bytes += allocated(int64(v.Len()), false)
	case reflect.Slice:
		if v.Cap() > 0 {
			e := v.Type().Elem()
			w.bytes += allocated(int64(v.Cap())*int64(e.Size()), w.points(e))
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
			w.bytes += allocated(int64(e.Size()), w.points(e))
			w.walk(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			e := v.Elem()
			if e.Kind() != reflect.Pointer && e.Kind() != reflect.Map {
				w.bytes += allocated(int64(e.Type().Size()), w.points(e.Type()))
			}
			w.walk(e)
		}
	case reflect.Map:
		w.entries(v)
	}
}

// elements adds what the elements point to; of very many the first ones speak for the others.
func (w *weigher) elements(v reflect.Value) {
	if !w.points(v.Type().Elem()) {
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
	pointers := w.points(kt) || w.points(et)
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
		if w.points(kt) {
			w.walk(each.Key())
		}
		if w.points(et) {
			w.walk(each.Value())
		}
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
