package protocol

import (
	"fmt"
	"hash/maphash"
)

// found is what a search of all reachable worlds came to.
type searched struct {
	states, depth int
	cut           bool                // the bound was reached
	wrong         map[string][]string // invariant → the shortest trace that breaks it
	seen          [sights]int
}

// node leads back to the first world: the nth successor of its parent.
type node struct {
	parent int32
	nth    uint16
}

// search visits all worlds, breadth first, up to bound of them. It ends at the first broken invariant for which enough
// says so.
func search(sh *shape, bound int, enough func(wrong string) bool) *searched {
	res := &searched{wrong: map[string][]string{}}
	saw := func(s sight) { res.seen[s]++ }
	seed1, seed2 := maphash.MakeSeed(), maphash.MakeSeed()
	var buf []byte
	key := func(w *world) [2]uint64 {
		buf = w.appendKey(buf[:0])
		return [2]uint64{maphash.Bytes(seed1, buf), maphash.Bytes(seed2, buf)}
	}
	begin := newWorld(sh)
	nodes := []node{{-1, 0}}
	known := map[[2]uint64]struct{}{key(&begin): {}}
	level, ids := []*world{&begin}, []int32{0}
	fail := func(id int32, nth int, wrong string) {
		if res.wrong[wrong] == nil {
			res.wrong[wrong] = retrace(sh, nodes, id, nth)
		}
	}
	for len(level) > 0 && !res.cut {
		var next []*world
		var nextIDs []int32
		for x, w := range level {
			succs := successors(sh, w, false, saw)
			if len(succs) == 0 {
				if wrong := endOf(sh, w); wrong != "" {
					fail(ids[x], -1, wrong)
				}
			}
			for nth, s := range succs {
				if s.wrong != "" {
					fail(ids[x], nth, s.wrong)
					if enough(s.wrong) {
						res.states = len(nodes)
						return res
					}
					continue
				}
				k := key(s.w)
				if _, ok := known[k]; ok {
					continue
				}
				if sh.solo {
					if wrong := alone(sh, s.w); wrong != "" {
						fail(ids[x], nth, wrong)
					}
				}
				known[k] = struct{}{}
				nodes = append(nodes, node{ids[x], uint16(nth)})
				next = append(next, s.w)
				nextIDs = append(nextIDs, int32(len(nodes)-1))
			}
			level[x] = nil
			if len(nodes) > bound {
				res.cut = true
				break
			}
		}
		level, ids = next, nextIDs
		res.depth++
	}
	res.states = len(nodes)
	return res
}

// endOf checks a world in which nothing can move: somebody must have come to the end.
func endOf(sh *shape, w *world) string {
	for i := range sh.runs {
		if st := w.local[i].status; st == done || st == differs {
			return ""
		}
	}
	return "PROGRESS: all runs have ended and none has finished"
}

// alone lets the newest run go on with all others frozen for good: it must finish.
func alone(sh *shape, from *world) string {
	if from.term == 0 {
		return ""
	}
	i := int(from.owner[from.term]) - 1
	if from.local[i].status != live {
		return ""
	}
	w := from
	for range 200 {
		switch st := w.local[i].status; st {
		case live:
		case done, differs:
			return ""
		default:
			return "PROGRESS: the newest run alone does not finish"
		}
		s := sim{sh: sh, i: i, saw: func(sight) {}}
		s.act(w)
		if len(s.out) > 0 {
			if s.out[len(s.out)-1].wrong != "" {
				return s.out[len(s.out)-1].wrong
			}
			w = s.out[len(s.out)-1].w // the last one is where nothing gets lost
			continue
		}
		moved := false
		for _, x := range surroundings(sh, w) {
			if x.what == "visible" {
				w, moved = x.w, true
				break
			}
		}
		if !moved {
			return "PROGRESS: the newest run alone is blocked"
		}
	}
	return "PROGRESS: the newest run alone goes on for ever"
}

// retrace tells the steps that lead to a world, and the nth step from there.
func retrace(sh *shape, nodes []node, id int32, nth int) []string {
	var path []int
	if nth >= 0 {
		path = append(path, nth)
	}
	for ; nodes[id].parent >= 0; id = nodes[id].parent {
		path = append(path, int(nodes[id].nth))
	}
	w := newWorld(sh)
	at := &w
	var out []string
	for x := len(path) - 1; x >= 0; x-- {
		s := successors(sh, at, true, func(sight) {})[path[x]]
		out = append(out, fmt.Sprintf("%2d %s %s", len(out)+1, s.label, s.wrong))
		at = s.w
	}
	return out
}
