package statemap

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// benchHash is a cheap stand-in for the stable hash of the caller (xxh3).
func benchHash(s string) uint64 {
	h := uint64(len(s)) * 0x9E3779B97F4A7C15
	for len(s) >= 8 {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		h = mix(h ^ w)
		s = s[8:]
	}
	for i := range len(s) {
		h = mix(h ^ uint64(s[i]) ^ 0xA5)
	}
	return h
}

type benchPair struct {
	key   string
	value int64
}

// benchState is what a state RDD puts between the map and the user function.
type benchState struct {
	s                        int64
	exists, updated, removed bool
}

func (st *benchState) Get() int64 { return st.s }
func (st *benchState) Update(s int64) {
	if st.removed {
		panic("removed")
	}
	st.s, st.updated, st.exists = s, true, true
}

func benchBlocks(m *Map[string, int64], b *Block[string, int64], in []benchPair, out []benchPair, fn func(k string, v int64, st *benchState) (benchPair, bool)) []benchPair {
	var hashes [BlockSize]uint64
	var keys [BlockSize]string
	var st benchState
	for len(in) > 0 {
		n := min(BlockSize, len(in))
		for i := range n {
			keys[i] = in[i].key
			hashes[i] = benchHash(in[i].key)
		}
		if err := m.Resolve(b, hashes[:n], keys[:n]); err != nil {
			panic(err)
		}
		for i := range n {
			s, exists, _ := b.Load(i)
			st = benchState{s: s, exists: exists}
			e, ok := fn(keys[i], in[i].value, &st)
			if st.removed {
				b.Delete(i)
			} else if st.updated {
				b.Set(i, st.s, 2)
			}
			if ok {
				out = append(out, e)
			}
		}
		if err := m.Apply(b); err != nil {
			panic(err)
		}
		in = in[n:]
	}
	return out
}

// BenchmarkUpdate compares the block path, hash, function and emit included,
// with a bare map loop, interleaved; the previous version is kept alive.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		for _, dist := range []string{"uniform", "zipf"} {
			b.Run(fmt.Sprintf("%dk/%s", n/1000, dist), func(b *testing.B) { benchUpdate(b, n, dist) })
		}
	}
}

func benchUpdate(b *testing.B, n int, dist string) {
	name := func(i int) string { return fmt.Sprintf("user-%011d", uint32(i)*2654435761) }
	bare := map[string]int64{}
	m, err := New[string, int64](Options[string]{Hash: benchHash})
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		bare[name(i)] = 0
		if err := m.Put(name(i), 0, 1); err != nil {
			b.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	z := rand.NewZipf(rng, 1.1, 10, uint64(n-1))
	in := make([]benchPair, 200_000)
	for i := range in {
		k := rng.IntN(n)
		if dist == "zipf" {
			k = int(z.Uint64())
		}
		in[i] = benchPair{name(k), 1}
	}
	out := make([]benchPair, 0, len(in))
	fn := func(k string, v int64, st *benchState) (benchPair, bool) {
		s := st.Get() + v
		st.Update(s)
		return benchPair{k, s}, true
	}
	var blk Block[string, int64]
	var bares, ours []float64
	per := func(f func()) float64 {
		t0 := time.Now()
		f()
		return float64(time.Since(t0).Nanoseconds()) / float64(len(in))
	}
	for b.Loop() {
		bares = append(bares, per(func() {
			out = out[:0]
			for i := range in {
				p := &in[i]
				s := bare[p.key] + p.value
				bare[p.key] = s
				out = append(out, benchPair{p.key, s})
			}
		}))
		prev := m
		ours = append(ours, per(func() {
			m, err = prev.Copy()
			if err != nil {
				b.Fatal(err)
			}
			out = benchBlocks(m, &blk, in, out[:0], fn)
		}))
		prev.Release()
	}
	slices.Sort(bares)
	slices.Sort(ours)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(bares[len(bares)/2], "bare-ns/rec")
	b.ReportMetric(ours[len(ours)/2], "ns/rec")
	b.ReportMetric(bares[0], "bare-min")
	b.ReportMetric(ours[0], "min")
	b.ReportMetric(ours[len(ours)/2]/bares[len(bares)/2], "ratio")
	b.ReportMetric(ours[0]/bares[0], "ratio-min")
}

// What the order of keys costs a reader of all of a version: once, and again when 1 % of the
// keys went and others came.
func BenchmarkSorted(b *testing.B) {
	const n = 1_000_000
	key := func(i int) string { return fmt.Sprintf("user-%011d", i*7919%n+i/n*n) }
	m, err := New[string, int64](Options[string]{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		if err := m.Put(key(i), int64(i), 0); err != nil {
			b.Fatal(err)
		}
	}
	sum := int64(0)
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			for _, e := range m.All() {
				sum += e.State
			}
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			c := m.h.(*handle[string, keyRef, int64]).t.Load()
			c.order.Store(nil)
			for _, e := range m.Sorted(cmp.Compare[string]) {
				sum += e.State
			}
		}
	})
	b.Run("same keys", func(b *testing.B) {
		for b.Loop() {
			for _, e := range m.Sorted(cmp.Compare[string]) {
				sum += e.State
			}
		}
	})
	b.Run("1 % new", func(b *testing.B) {
		i := 0
		for b.Loop() {
			next, err := m.Copy()
			if err != nil {
				b.Fatal(err)
			}
			for range n / 100 {
				if next.Remove(key(i)) != nil || next.Put(key(n+i), 1, 1) != nil {
					b.Fatal("it is not written")
				}
				i++
			}
			m.Release()
			m = next
			for _, e := range m.Sorted(cmp.Compare[string]) {
				sum += e.State
			}
		}
	})
}
