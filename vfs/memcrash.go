package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// CrashClone returns what a machine that crashes now may find when it comes up
// again; m itself and files open in it go on as they were. Synced bytes and
// names of synced directories are there. Of the rest each part is kept with
// the given probability in percent: 0 loses all that was not synced, 100
// copies the file system whole. A kept tail of a file may be cut at any byte,
// or have its full length with zeros from there on; of the changes to one name
// (created, removed, created again) a first part is kept, independently of
// other names. Locks are free, and all that is there is durable.
//
// rng decides, the same seed alike; it may be nil for 0 and 100.
func (m *Mem) CrashClone(rng *rand.Rand, percent int) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := crash{rng: rng, percent: percent, files: map[*memNode]*memNode{}}
	clone := NewMem(WithNow(m.now), WithOwner(m.host, m.pid))
	clone.ticks = m.ticks
	for _, name := range slices.Sorted(maps.Keys(m.roots)) {
		clone.roots[name] = c.node(m.roots[name])
	}
	return clone
}

// crash makes one clone. Everything is visited in sorted order, so that one
// seed gives one outcome.
type crash struct {
	rng     *rand.Rand
	percent int
	files   map[*memNode]*memNode // a file stays one file under all its names
}

// keep decides about one part.
func (c *crash) keep() bool {
	switch {
	case c.percent <= 0:
		return false
	case c.percent >= 100:
		return true
	}
	return c.rng.IntN(100) < c.percent
}

func (c *crash) node(n *memNode) *memNode {
	if done := c.files[n]; done != nil {
		return done
	}
	if !n.dir {
		f := &memNode{mod: n.mod, data: c.bytes(n)}
		f.synced = len(f.data)
		c.files[n] = f
		return f
	}
	names := maps.Clone(n.durable)
	lost := map[string]bool{} // names of which no later change is kept either
	for _, p := range n.pending {
		if !lost[p.name] && c.keep() {
			put(names, p.name, p.node)
		} else {
			lost[p.name] = true
		}
	}
	d := newMemDir(n.mod)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d.entries[name] = c.node(names[name])
	}
	d.durable = maps.Clone(d.entries)
	return d
}

// bytes gives the content after the crash.
func (c *crash) bytes(n *memNode) []byte {
	tail := len(n.data) - n.synced
	if tail == 0 || c.percent >= 100 {
		return slices.Clone(n.data)
	}
	if !c.keep() {
		return slices.Clone(n.data[:n.synced])
	}
	cut := n.synced + c.rng.IntN(tail+1)
	if c.rng.IntN(4) > 0 {
		return slices.Clone(n.data[:cut])
	}
	// The length reached the disk before the bytes did.
	b := make([]byte, len(n.data))
	copy(b, n.data[:cut])
	return b
}
