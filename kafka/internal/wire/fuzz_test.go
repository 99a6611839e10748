package wire

import (
	"runtime"
	"strings"
	"testing"
)

// hostile gives a request the bytes of a hostile answer, in one of its versions. The
// memory that it takes depends on how many bytes there are, not on what they say; a
// connection is given up where they are no answer.
func hostile(f *testing.F, names ...string) {
	all := calls()
	versions := map[string][]int16{}
	for _, g := range goldens(f, "request") {
		versions[g.name] = append(versions[g.name], g.version)
	}
	for _, g := range goldens(f, "answer") {
		for i, name := range names {
			if strings.HasPrefix(g.name, name+"/") {
				f.Add(byte(i), byte(g.version), g.bytes)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which, version byte, b []byte) {
		name := names[int(which)%len(names)]
		spoken := versions[name]
		v := spoken[int(version)%len(spoken)]
		c, _ := talking(all[name].key, v, b)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := all[name].do(t.Context(), c)
		runtime.ReadMemStats(&after)
		used := after.TotalAlloc - before.TotalAlloc
		if limit := uint64(256<<10 + 400*len(b)); used > limit {
			t.Fatalf("%s v%d: %d bytes allocated for an answer of %d (%v)", name, v, used, len(b), err)
		}
	})
}

// The decoders of what brokers answer, by family: whatever the bytes are, no panic, an
// end, and memory by their number.
func FuzzVersions(f *testing.F) { hostile(f, "ApiVersions") }
func FuzzMetadata(f *testing.F) { hostile(f, "Metadata") }
func FuzzFetch(f *testing.F)    { hostile(f, "Fetch") }
func FuzzOffsets(f *testing.F)  { hostile(f, "ListOffsets", "OffsetForLeaderEpoch") }
func FuzzGroup(f *testing.F) {
	hostile(f, "OffsetCommit", "OffsetFetch", "FindCoordinator", "ListGroups")
}
func FuzzTransaction(f *testing.F) {
	hostile(f, "Produce", "InitProducerId", "InitProducerIdNext", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit")
}
