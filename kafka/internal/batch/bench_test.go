package batch

import (
	"fmt"
	"testing"

	bt "github.com/statemill/statemill/kafka/internal/batchtest"
)

// BenchmarkDecode is one record of a 20-byte value without a key, in batches of 500.
func BenchmarkDecode(b *testing.B) {
	for name, codec := range bt.Codecs() {
		b.Run(name, func(b *testing.B) {
			var data []byte
			const batches, each = 64, 500
			for i := range batches {
				x := bt.Batch{Base: int64(i * each), Codec: codec}
				for k := range each {
					x.Records = append(x.Records, bt.Record{Delta: k, TimeDelta: int64(k), Value: fmt.Appendf(nil, "value of record %04d", k)})
				}
				data = x.Append(data)
			}
			var d Decoder
			var r Record
			b.ReportAllocs()
			for n := 0; n < b.N; {
				d.Reset(data, 0, true, nil, 1<<20)
				for n < b.N {
					more, err := d.Next(&r)
					if err != nil {
						b.Fatal(err)
					}
					if !more {
						break
					}
					n++
				}
			}
		})
	}
}
