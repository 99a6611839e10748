package main

import (
	"math/rand/v2"
	"unsafe"
)

// keySize is the length of every key in bytes.
const keySize = 16

// records are input records by columns, for both sides alike.
type records struct {
	keys   []string
	values []int64
}

func (r records) len() int { return len(r.keys) }

func (r records) slice(from, to int) records { return records{r.keys[from:to], r.values[from:to]} }

// chunks cuts records into batches of at most size.
func (r records) chunks(size int) []records {
	var out []records
	for from := 0; from < r.len(); from += size {
		out = append(out, r.slice(from, min(from+size, r.len())))
	}
	return out
}

// data makes batches over n uniform keys.
type data struct {
	n, perBatch int
	rng         *rand.Rand
}

// newData makes a generator; quick makes it tiny.
func newData(o options, n, perBatch int) *data {
	if o.quick {
		n, perBatch = max(n/100, 100), max(perBatch/100, 100)
	}
	return &data{n: n, perBatch: perBatch, rng: rand.New(rand.NewPCG(1, 2))}
}

// next makes a batch whose key bytes lie in a buffer of its own, as those of fetched records do.
func (d *data) next() records {
	return d.fill(d.perBatch, func(int) int { return d.rng.IntN(d.n) })
}

// all makes one batch with every key once, in random order.
func (d *data) all() records {
	order := d.rng.Perm(d.n)
	return d.fill(d.n, func(i int) int { return order[i] })
}

// fill makes a batch of size records from key numbers.
func (d *data) fill(size int, pick func(i int) int) records {
	buf := make([]byte, size*keySize)
	in := records{make([]string, size), make([]int64, size)}
	for i := range size {
		b := buf[i*keySize : (i+1)*keySize]
		putKey(b, pick(i))
		in.keys[i], in.values[i] = unsafe.String(&b[0], keySize), 1
	}
	return in
}

// putKey writes the key of a number: 16 hexadecimal digits of a mixed number, so that keys share no prefix.
func putKey(b []byte, n int) {
	const digits = "0123456789abcdef"
	x := uint64(n) * 0x9E3779B97F4A7C15
	x ^= x >> 29
	for i := range b {
		b[i] = digits[x&15]
		x >>= 4
	}
}

// lineSize is the length of every line in bytes: a key, a blank, and a filler.
const lineSize = keySize + 4

// lines are the values of Kafka records.
type lines []string

func (l lines) len() int { return len(l) }

func (l lines) slice(from, to int) lines { return l[from:to] }

func (l lines) each(from int64, emit func(int64, string) error) error {
	for i, line := range l {
		if err := emit(from+int64(i), line); err != nil {
			return err
		}
	}
	return nil
}

// lines turns keys into lines, whose bytes lie in a buffer of their own.
func (r records) lines() lines {
	buf := make([]byte, 0, r.len()*lineSize)
	out := make(lines, r.len())
	for i, k := range r.keys {
		at := len(buf)
		buf = append(append(buf, k...), " ..."...)
		out[i] = unsafe.String(&buf[at], lineSize)
	}
	return out
}
