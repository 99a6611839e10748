package batch

import (
	"runtime"
	"testing"

	bt "github.com/statemill/statemill/kafka/internal/batchtest"
)

// FuzzDecoder: whatever the bytes are, no panic, offsets that grow within the walk,
// and memory that the limit bounds. The checksums are made right, so that the bytes
// behind them are looked at.
func FuzzDecoder(f *testing.F) {
	for _, codec := range bt.Codecs() {
		b := bt.Values(3, "one", "two", "three")
		b.Codec = codec
		b.Records[1].Headers = []bt.Header{{Key: "k", Value: []byte("v")}}
		f.Add(append(bt.Empty(0, 2).Append(nil), b.Append(nil)...), int64(1), true)
	}
	f.Add(join(bt.Marker(9, 4, false)), int64(0), false)
	f.Add(bt.Batch{Base: 3, Codec: bt.Zstd}.AppendBody(nil, wideFrame(f, bt.Values(3, "wide").Append(nil)[headerSize:]), 1), int64(0), true)
	const most = 256 << 10
	f.Fuzz(func(t *testing.T, data []byte, from int64, committed bool) {
		for at := 0; at+headerSize <= len(data); {
			size := int(int32(uint32(data[at+8])<<24|uint32(data[at+9])<<16|uint32(data[at+10])<<8|uint32(data[at+11]))) + 12
			if size < headerSize || at+size > len(data) {
				break
			}
			bt.Seal(data[at : at+size])
			at += size
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var d Decoder
		d.Reset(data, from, committed, []Aborted{{4, 2}, {4, 1}}, most)
		Span(data)
		var r Record
		last, batches, heads := from-1, len(data)/headerSize, 0
		for {
			more, err := d.Next(&r)
			if err != nil || !more {
				break
			}
			if r.Offset <= last {
				t.Fatalf("offset %d after %d", r.Offset, last)
			}
			last = r.Offset
			r.EachHeader(func(_, _ []byte) bool { return true })
			if heads += r.NumHeaders; heads*HeaderSize > batches*most { // what a caller makes of them
				t.Fatalf("%d headers in %d batches", heads, batches)
			}
		}
		if d.Offset() < from || d.Offset() <= last {
			t.Fatalf("next offset %d, asked for %d, last record %d", d.Offset(), from, last)
		}
		runtime.ReadMemStats(&after)
		// The decompressors' own tables take up to some MiB.
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(32<<20+batches*4*most) {
			t.Fatalf("%d bytes allocated for %d bytes with %d batches", used, len(data), batches)
		}
	})
}
