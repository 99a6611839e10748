package batch

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What a Builder writes, the Decoder reads, in every codec.
func TestBuilder(t *testing.T) {
	type row struct {
		time       int64
		key, value []byte
		headers    []KeyValue
	}
	text := rapid.SliceOfN(rapid.Byte(), 0, 40)
	null := func(t *rapid.T, b []byte) []byte {
		if rapid.Bool().Draw(t, "null") {
			return nil
		}
		return b
	}
	rapid.Check(t, func(t *rapid.T) {
		var b Builder
		for range 2 { // a builder is used again
			var want []row
			for range rapid.IntRange(1, 30).Draw(t, "records") {
				r := row{time: rapid.Int64Range(0, 1<<41).Draw(t, "time"), key: null(t, text.Draw(t, "key")), value: null(t, text.Draw(t, "value"))}
				for range rapid.IntRange(0, 3).Draw(t, "headers") {
					r.headers = append(r.headers, KeyValue{string(text.Draw(t, "name")), null(t, text.Draw(t, "header"))})
				}
				want = append(want, r)
				b.Add(r.time, r.key, r.value, r.headers)
			}
			require.Equal(t, len(want), b.Len())
			codec := Codec(rapid.IntRange(0, 4).Draw(t, "codec"))
			data, err := b.Append(nil, Producer{ID: 7, Epoch: 1, Sequence: 5, Transactional: true}, codec)
			require.NoError(t, err)
			if codec == NoCodec {
				require.Len(t, data, b.Size())
			}
			var d Decoder
			d.Reset(data, 0, true, nil, 1<<20)
			for i, w := range want {
				var r Record
				more, err := d.Next(&r)
				require.NoError(t, err)
				require.True(t, more)
				var headers []KeyValue
				r.EachHeader(func(k, v []byte) bool {
					headers = append(headers, KeyValue{string(k), v})
					return true
				})
				require.Equal(t, int64(i), r.Offset)
				require.Equal(t, w, row{r.Time, r.Key, r.Value, headers})
			}
			more, err := d.Next(new(Record))
			require.NoError(t, err)
			require.False(t, more)
			b.Reset()
		}
	})
}

func TestBuilderUnknownCodec(t *testing.T) {
	var b Builder
	b.Add(1, nil, nil, nil)
	_, err := b.Append(nil, Producer{ID: -1, Epoch: -1, Sequence: -1}, 9)
	require.ErrorContains(t, err, "codec 9")
}
