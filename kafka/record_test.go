package kafka

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

func ExampleRecord() {
	r := Record{Topic: "words", Partition: 3, Offset: 17, Key: []byte("k"), Value: []byte("hello"),
		Headers: []Header{{Key: "trace", Value: []byte("abc")}}}
	trace, ok := r.Header("trace")
	fmt.Println(r.Text(), r.KeyText(), string(trace), ok, r.Tombstone())
	fmt.Println(r)
	// Output:
	// hello k abc true false
	// words-3@17 (key 1 bytes, value 5 bytes)
}

func TestRecordFields(t *testing.T) { // report 32
	b := newFake(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	b.log("t", 0, batchtest.Batch{Time: at.UnixMilli(), Records: []batchtest.Record{
		{Key: []byte("a"), Value: []byte("x"), TimeDelta: 1000},
		{Delta: 1, Key: []byte("a")},
		{Delta: 2, Key: []byte("a"), Value: []byte{}},
		{Delta: 3, Headers: []batchtest.Header{{Key: "h", Value: []byte("1")}, {Key: "h"}, {Key: "g", Value: []byte{}}}},
	}}, batchtest.Batch{Base: 4, Time: -1, Records: []batchtest.Record{{Value: []byte("no time")}}})
	s := open(t, b, nil)
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	var got []Record
	require.NoError(t, s.Read(t.Context(), p.Ranges[0], func(_ int64, r Record) error { got = append(got, r); return nil }))
	require.Equal(t, []Record{
		{Topic: "t", Offset: 0, Key: []byte("a"), Value: []byte("x"), Time: at.Add(time.Second)},
		{Topic: "t", Offset: 1, Key: []byte("a"), Time: at},
		{Topic: "t", Offset: 2, Key: []byte("a"), Value: []byte{}, Time: at},
		{Topic: "t", Offset: 3, Headers: []Header{{"h", []byte("1")}, {"h", nil}, {"g", []byte{}}}, Time: at},
		{Topic: "t", Offset: 4, Value: []byte("no time")},
	}, got)
	require.False(t, got[0].Tombstone())
	require.True(t, got[1].Tombstone())
	require.False(t, got[2].Tombstone())
	v, ok := got[3].Header("h")
	require.True(t, ok)
	require.Nil(t, v, "the last one counts")
	_, ok = got[3].Header("none")
	require.False(t, ok)
	require.Equal(t, `topic "t" partition 0 offset 3`, s.Locate("t-0", 3))
	require.Equal(t, `partition "x" offset 3`, s.Locate("x", 3))
}

func TestHeaderKeysAreBounded(t *testing.T) {
	var h headers
	for i := range 3 * keysKept {
		require.Equal(t, fmt.Sprint(i), h.key(fmt.Append(nil, i)))
	}
	require.LessOrEqual(t, len(h.keys), keysKept)
}

// TestHeadersAreBounded: what a broker sends compressed costs memory by MaxBatchBytes,
// whatever it is made of. // report 29, report 34
func TestHeadersAreBounded(t *testing.T) {
	const most = 1 << 20
	b := newFake(t)
	x := batchtest.Batch{Codec: batchtest.Gzip, Records: []batchtest.Record{{Headers: make([]batchtest.Header, most/2-100)}}}
	b.log("t", 0, x)
	s := open(t, b, nil, MaxBatchBytes(most))
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { return nil })
	runtime.ReadMemStats(&after)
	var e *RecordError
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, ErrTooLarge)
	require.Zero(t, e.Offset)
	require.ErrorContains(t, err, "MaxBatchBytes")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*most), "as Header values they take 20 times as much")
}

func TestLongHeaderKeysAreNotKept(t *testing.T) {
	var h headers
	long := strings.Repeat("k", 1<<10)
	require.Equal(t, long, h.key([]byte(long)))
	require.Empty(t, h.keys)
}

// TestRecordsStayValidOverBatches: records that were kept from all batches, of every
// codec, have their bytes when the last one is read.
func TestRecordsStayValidOverBatches(t *testing.T) {
	b := newFake(t)
	var batches []batchtest.Batch
	text := func(i int) string { return fmt.Sprint(i, strings.Repeat("x", 200)) }
	for i := range 120 {
		var values []string
		for j := range 10 {
			values = append(values, text(10*i+j))
		}
		x := batchtest.Values(int64(10*i), values...)
		x.Codec = i % 6
		batches = append(batches, x)
	}
	b.log("t", 0, batches...)
	s := open(t, b, nil, FetchMaxBytes(4<<10))
	var kept []Record
	for epoch := uint64(1); len(kept) < 1200; epoch++ {
		p, err := s.Plan(t.Context(), source.Limits{Records: 133, Epoch: epoch})
		require.NoError(t, err)
		require.NoError(t, s.Read(t.Context(), p.Ranges[0], func(_ int64, r Record) error { kept = append(kept, r); return nil }))
	}
	for i, r := range kept {
		require.EqualValues(t, i, r.Offset)
		require.Equal(t, text(i), r.Text())
	}
}
