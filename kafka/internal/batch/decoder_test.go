package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	bt "github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/stretchr/testify/require"
)

const limit = 1 << 20

// got is what a decoder gives, as "offset=value".
func got(t *testing.T, d *Decoder) (out []string) {
	t.Helper()
	var r Record
	for {
		more, err := d.Next(&r)
		require.NoError(t, err)
		if !more {
			return out
		}
		out = append(out, fmt.Sprintf("%d=%s", r.Offset, r.Value))
	}
}

func join(batches ...bt.Batch) (out []byte) {
	for _, b := range batches {
		out = b.Append(out)
	}
	return out
}

func each(t *testing.T, test func(t *testing.T, codec int)) {
	for name, codec := range bt.Codecs() {
		t.Run(name, func(t *testing.T) { test(t, codec) })
	}
}

func with(codec int, batches ...bt.Batch) []bt.Batch {
	for i := range batches {
		if len(batches[i].Records) > 0 {
			batches[i].Codec = codec
		}
	}
	return batches
}

func TestEveryCodec(t *testing.T) {
	each(t, func(t *testing.T, codec int) {
		long := strings.Repeat("long ", 1000)
		data := join(with(codec, bt.Values(0, "a", "", long), bt.Values(3, "d"))...)
		var d Decoder
		for range 2 { // the decompressors are used again
			d.Reset(data, 0, true, nil, limit)
			require.Equal(t, []string{"0=a", "1=", "2=" + long, "3=d"}, got(t, &d))
			require.EqualValues(t, 4, d.Offset())
			records, size := d.Seen()
			require.EqualValues(t, 4, records)
			require.Greater(t, size, int64(len(long)))
		}
	})
}

// TestHoles has the shapes that compaction leaves. // report 25
func TestHoles(t *testing.T) {
	for name, c := range map[string]struct {
		from    int64
		batches []bt.Batch
		want    []string
		next    int64
	}{
		"only an empty batch":          {100, []bt.Batch{bt.Empty(100, 109)}, nil, 110},
		"three empty, then a record":   {100, []bt.Batch{bt.Empty(100, 109), bt.Empty(110, 119), bt.Empty(120, 129), bt.Values(130, "x")}, []string{"130=x"}, 131},
		"empty ones between":           {100, []bt.Batch{bt.Values(100, "a"), bt.Empty(101, 109), bt.Empty(110, 119), bt.Values(120, "b", "c")}, []string{"100=a", "120=b", "121=c"}, 122},
		"a hole at the end of a batch": {0, []bt.Batch{{Base: 0, Last: 9, Records: []bt.Record{{Delta: 3, Value: []byte("x")}}}}, []string{"3=x"}, 10},
		"a hole between batches":       {5, []bt.Batch{bt.Values(8, "x")}, []string{"8=x"}, 9},
		"below what was asked for":     {2, []bt.Batch{bt.Values(0, "a", "b", "c", "d")}, []string{"2=c", "3=d"}, 4},
		"whole batches below":          {4, []bt.Batch{bt.Values(0, "a", "b"), bt.Empty(2, 3), bt.Values(4, "e")}, []string{"4=e"}, 5},
		"nothing":                      {7, nil, nil, 7},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, codec int) {
				var d Decoder
				d.Reset(join(with(codec, c.batches...)...), c.from, true, nil, limit)
				require.Equal(t, c.want, got(t, &d))
				require.Equal(t, c.next, d.Offset())
			})
		})
	}
}

func TestTransactions(t *testing.T) { // report 26
	txn := func(base, producer int64, v string) bt.Batch {
		b := bt.Values(base, v)
		b.Producer, b.Txn = producer, true
		return b
	}
	data := join(
		txn(0, 7, "aborted"), txn(1, 8, "committed"), bt.Marker(2, 7, false), bt.Values(3, "plain"),
		txn(4, 7, "second try"), bt.Marker(5, 8, true), bt.Marker(6, 7, true),
		txn(7, 9, "gone"), txn(8, 7, "gone too"), bt.Marker(9, 9, false), bt.Marker(10, 7, false), bt.Values(11, "end"))
	aborted := []Aborted{{9, 7}, {7, 8}, {7, 0}} // by no order
	var d Decoder
	d.Reset(data, 0, true, aborted, limit)
	require.Equal(t, []string{"1=committed", "3=plain", "4=second try", "11=end"}, got(t, &d))
	require.EqualValues(t, 12, d.Offset())

	d.Reset(data, 0, false, nil, limit)
	require.Equal(t, []string{"0=aborted", "1=committed", "3=plain", "4=second try", "7=gone", "8=gone too", "11=end"}, got(t, &d))

	d.Reset(join(bt.Values(90, "data"), bt.Marker(91, 7, true)), 90, true, nil, limit) // report 21
	require.Equal(t, []string{"90=data"}, got(t, &d))
	require.EqualValues(t, 92, d.Offset())
}

func TestNullAndEmpty(t *testing.T) { // report 32
	b := bt.Batch{Time: 1000, Records: []bt.Record{
		{Key: []byte("a"), Value: []byte("x"), TimeDelta: 5},
		{Delta: 1, Key: []byte("a")},
		{Delta: 2, Key: []byte{}, Value: []byte{}},
		{Delta: 3, Headers: []bt.Header{{Key: "h", Value: []byte("1")}, {Key: "h"}, {Value: []byte{}}}},
	}}
	each(t, func(t *testing.T, codec int) {
		b.Codec = codec
		var d Decoder
		d.Reset(b.Append(nil), 0, true, nil, limit)
		var all []Record
		for {
			var r Record
			more, err := d.Next(&r)
			require.NoError(t, err)
			if !more {
				break
			}
			all = append(all, r)
		}
		require.Len(t, all, 4)
		require.EqualValues(t, 1005, all[0].Time)
		require.NotNil(t, all[1].Key)
		require.Nil(t, all[1].Value)
		require.NotNil(t, all[2].Key)
		require.NotNil(t, all[2].Value)
		require.Empty(t, all[2].Value)
		require.Nil(t, all[3].Key)
		var headers []string
		all[3].EachHeader(func(k, v []byte) bool {
			headers = append(headers, fmt.Sprintf("%s=%s,%t", k, v, v == nil))
			return true
		})
		require.Equal(t, []string{"h=1,false", "h=,true", "=,false"}, headers)
	})
}

func TestTimeOfTheBroker(t *testing.T) {
	b := bt.Values(0, "a", "b")
	b.Time, b.MaxTime, b.LogAppend = 5, 99, true
	b.Records[1].TimeDelta = 7
	var d Decoder
	d.Reset(b.Append(nil), 0, true, nil, limit)
	var r Record
	for range 2 {
		more, err := d.Next(&r)
		require.True(t, more)
		require.NoError(t, err)
		require.EqualValues(t, 99, r.Time)
	}
}

// TestCutAtEveryByte: what is whole comes out, the rest is left for the next fetch.
func TestCutAtEveryByte(t *testing.T) {
	one, two := bt.Values(0, "a", "b").Append(nil), bt.Values(2, "c").Append(nil)
	data := append(bytes.Clone(one), two...)
	var d Decoder
	for n := range len(data) {
		d.Reset(data[:n], 0, true, nil, limit)
		records := got(t, &d)
		switch {
		case n < len(one):
			require.Empty(t, records)
			require.EqualValues(t, 0, d.Offset())
		default:
			require.Equal(t, []string{"0=a", "1=b"}, records)
			require.EqualValues(t, 2, d.Offset())
		}
		if n > 16 && n < len(one) {
			require.Equal(t, len(one), d.Need())
		}
	}
}

func TestSpan(t *testing.T) {
	data := join(bt.Values(5, "a", "b"), bt.Empty(10, 19))
	size, offsets := Span(append(data, data[:30]...))
	require.EqualValues(t, len(data), size)
	require.EqualValues(t, 15, offsets)
	size, offsets = Span(data[:40])
	require.Zero(t, size)
	require.Zero(t, offsets)
}

func TestTrim(t *testing.T) {
	long := strings.Repeat("x", 1000)
	one, two, three := bt.Values(0, long), bt.Values(1, long, long), bt.Values(3, long)
	data := join(one, two, three)
	require.Equal(t, one.Append(nil), Trim(data, 1))
	require.Equal(t, join(one, two), Trim(join(one, two, three, three), 3))
	require.NotSame(t, &data[0], &Trim(data, 1)[0], "in a buffer of its own")
	require.Same(t, &data[0], &Trim(data, 4)[0], "nothing to win")
	require.Equal(t, one.Append(nil), Trim(join(one, two)[:1800], 4), "without the batch that was cut")
	cut := data[:500]
	require.Same(t, &cut[0], &Trim(cut, 4)[0], "no whole batch: its length is needed")
	require.Equal(t, data, Trim(data, 0), "nothing of it is needed")
	require.Empty(t, Trim(nil, 1))
	data[16] = 1
	require.Same(t, &data[0], &Trim(data, 1)[0], "an old format is for the decoder to tell")
}

func TestDamage(t *testing.T) {
	good := bt.Values(40, "value", "other")
	edit := func(at int, v ...byte) []byte {
		b := good.Append(nil)
		copy(b[at:], v)
		if at > 17 {
			bt.Seal(b)
		}
		return b
	}
	record := func(fields ...int64) []byte { // a record of varints
		body := []byte{0}
		for _, f := range fields {
			body = binary.AppendVarint(body, f)
		}
		return good.AppendBody(nil, append(binary.AppendVarint(nil, int64(len(body))), body...), 1)
	}
	for name, c := range map[string]struct {
		data []byte
		is   error
		says string
	}{
		"format v0":              {edit(16, 0), ErrOldFormat, "format v0 (magic 0)"},
		"format v1":              {edit(16, 1), ErrOldFormat, "format v1 (magic 1)"},
		"format of the future":   {edit(16, 3), ErrCorrupt, "magic byte 3"},
		"checksum":               {edit(17, 1, 2, 3, 4), ErrCRC, "does not match"},
		"length too small":       {edit(8, 0, 0, 0, 3), ErrCorrupt, "length 3"},
		"length negative":        {edit(8, 0xff), ErrCorrupt, "length -"},
		"last before first":      {edit(23, 0x80), ErrCorrupt, "last offset"},
		"base negative":          {edit(0, 0x80), ErrCorrupt, "last offset"},
		"count negative":         {edit(57, 0xff), ErrCorrupt, "records"},
		"count too large":        {edit(57, 0x7f), ErrCorrupt, "a record of"},
		"count too small":        {edit(57, 0, 0, 0, 1), ErrCorrupt, "follow its last record"},
		"unknown codec":          {edit(21, 0, 5), ErrCorrupt, "codec 5 is not known"},
		"not gzip":               {edit(21, 0, bt.Gzip), ErrCorrupt, "gzip"},
		"not snappy":             {edit(21, 0, bt.Snappy), ErrCorrupt, "snappy"},
		"not lz4":                {edit(21, 0, bt.LZ4), ErrCorrupt, "lz4"},
		"not zstd":               {edit(21, 0, bt.Zstd), ErrCorrupt, "zstd"},
		"offset beyond the last": {record(0, 9, -1, -1, 0), ErrCorrupt, "offset is 9 behind"},
		"offset before first":    {record(0, -1, -1, -1, 0), ErrCorrupt, "offset is -1 behind"},
		"key beyond":             {record(0, 0, 50, 1, 0), ErrCorrupt, "key of offset 40"},
		"key length -2":          {record(0, 0, -2, 1, 0), ErrCorrupt, "key of offset 40"},
		"value beyond":           {record(0, 0, -1, 1<<40, 0), ErrCorrupt, "value of offset 40"},
		"headers beyond":         {record(0, 0, -1, -1, 9, 0), ErrCorrupt, "9 headers"},
		"headers negative":       {record(0, 0, -1, -1, -1), ErrCorrupt, "-1 headers"},
		"header without a key":   {record(0, 0, -1, -1, 1, -1, -1), ErrCorrupt, "headers of offset 40"},
		"bytes after a record":   {record(0, 0, -1, -1, 0, 0), ErrCorrupt, "follow the record"},
		"endless varint":         {good.AppendBody(nil, bytes.Repeat([]byte{0xff}, 20), 1), ErrCorrupt, "a record of"},
		"xerial cut":             {bt.Batch{Base: 40, Codec: bt.Xerial}.AppendBody(nil, []byte("\x82SNAPPY\x00\x00"), 1), ErrCorrupt, "snappy"},
		"xerial block beyond":    {bt.Batch{Base: 40, Codec: bt.Xerial}.AppendBody(nil, append([]byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"), 0xff, 0, 0, 0, 1), 1), ErrCorrupt, "snappy"},
	} {
		t.Run(name, func(t *testing.T) {
			var d Decoder
			d.Reset(append(bt.Values(0, "before").Append(nil), c.data...), 0, true, nil, limit)
			var r Record
			more, err := d.Next(&r)
			require.True(t, more, "what is good before it comes out")
			require.NoError(t, err)
			for more && err == nil {
				more, err = d.Next(&r)
			}
			var e *Error
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			if name != "base negative" {
				require.EqualValues(t, 40, e.Base)
			}
			_, again := d.Next(&r)
			require.Equal(t, err, again, "the error stays")
		})
	}
}

func TestInflationLimit(t *testing.T) { // report 29
	bomb := bt.Values(5, strings.Repeat("\x00", 3<<20))
	each(t, func(t *testing.T, codec int) {
		if codec == bt.None {
			return // what was sent is bounded by the fetch
		}
		bomb.Codec = codec
		var d Decoder
		d.Reset(bomb.Append(nil), 5, true, nil, limit)
		var r Record
		_, err := d.Next(&r)
		require.ErrorIs(t, err, ErrTooLarge)
		require.ErrorContains(t, err, "at offset 5")
		d.Reset(bomb.Append(nil), 5, true, nil, 4<<20)
		_, err = d.Next(&r)
		require.NoError(t, err)
		require.Len(t, r.Value, 3<<20)
	})
	claims := binary.AppendUvarint(nil, 1<<31) // a snappy block that claims 2 GiB
	var d Decoder
	d.Reset(bt.Batch{Codec: bt.Snappy}.AppendBody(nil, claims, 1), 0, true, nil, limit)
	_, err := d.Next(new(Record))
	require.ErrorIs(t, err, ErrTooLarge)
}

// TestHeadersCount: a header takes two bytes in a batch and far more in memory, in one
// record or in many. // report 29, report 34
func TestHeadersCount(t *testing.T) {
	const most = 256 << 10
	many := make([]bt.Header, most/HeaderSize-100)
	one := bt.Batch{Records: []bt.Record{{Headers: many}}}
	spread := bt.Batch{}
	for i := range 100 {
		spread.Records = append(spread.Records, bt.Record{Delta: i, Headers: many[:len(many)/100]})
	}
	each(t, func(t *testing.T, codec int) {
		for _, b := range []bt.Batch{one, spread} {
			b.Codec = codec
			var d Decoder
			var r Record
			read := func(most int) (n int, err error) {
				d.Reset(b.Append(nil), 0, true, nil, most)
				for more := true; more && err == nil; {
					if more, err = d.Next(&r); more {
						n += r.NumHeaders
					}
				}
				return n, err
			}
			n, err := read(most / 2)
			require.ErrorIs(t, err, ErrTooLarge)
			require.ErrorContains(t, err, "headers")
			require.Less(t, n*HeaderSize, most/2)
			n, err = read(2 * most)
			require.NoError(t, err)
			require.Greater(t, n, len(many)*9/10)
			_, seen := d.Seen()
			require.Greater(t, seen, int64(n*HeaderSize))
		}
	})
}

// TestRecordsStayValid: neither the next batch nor the next answer touches what was
// given.
func TestRecordsStayValid(t *testing.T) {
	each(t, func(t *testing.T, codec int) {
		data := join(with(codec, bt.Values(0, "first", "second"), bt.Values(2, "third", "fourth"))...)
		var d Decoder
		var kept [][]byte
		for range 3 {
			d.Reset(data, 0, true, nil, limit)
			var r Record
			for {
				more, err := d.Next(&r)
				require.NoError(t, err)
				if !more {
					break
				}
				kept = append(kept, r.Value)
				require.Equal(t, len(r.Value), cap(r.Value), "append cannot reach the neighbour")
			}
		}
		for i, v := range kept {
			require.Equal(t, []string{"first", "second", "third", "fourth"}[i%4], string(v))
		}
	})
}

func TestNoAllocationPerRecord(t *testing.T) {
	b := bt.Batch{}
	for i := range 1000 {
		b.Records = append(b.Records, bt.Record{Delta: i, Key: []byte("key"), Value: []byte("value of a record"), Headers: []bt.Header{{Key: "h", Value: []byte("v")}}})
	}
	data := b.Append(nil)
	var d Decoder
	var r Record
	require.Zero(t, testing.AllocsPerRun(10, func() {
		d.Reset(data, 0, true, nil, limit)
		for {
			if more, _ := d.Next(&r); !more {
				return
			}
		}
	}))
}

func TestWholeAndFrom(t *testing.T) {
	one, two, hole := bt.Values(0, "a"), bt.Values(1, "b", "c"), bt.Empty(3, 9)
	data := join(one, two, hole)
	whole, next := Whole(append(bytes.Clone(data), data[:60]...))
	require.Equal(t, data, whole)
	require.EqualValues(t, 10, next)
	whole, next = Whole(data[:30])
	require.Empty(t, whole)
	require.EqualValues(t, -1, next)
	require.Equal(t, data, From(data, 0))
	require.Equal(t, join(two, hole), From(data, 1))
	require.Equal(t, join(two, hole), From(data, 2), "a batch that is begun")
	require.Equal(t, hole.Append(nil), From(data, 9))
	require.Empty(t, From(data, 10))
}

// TestMarkersBelowTheOffset: a decoder that begins in the middle of an answer knows which
// transactions have ended before.
func TestMarkersBelowTheOffset(t *testing.T) {
	txn := func(base int64, v string) bt.Batch {
		x := bt.Values(base, v)
		x.Producer, x.Txn = 7, true
		return x
	}
	data := join(txn(0, "a"), bt.Marker(1, 7, false), txn(2, "b"), bt.Marker(3, 7, true))
	var d Decoder
	d.Reset(data, 2, true, []Aborted{{Producer: 7, First: 0}}, 1<<20)
	var r Record
	more, err := d.Next(&r)
	require.NoError(t, err)
	require.True(t, more)
	require.Equal(t, "b", string(r.Value))
}
