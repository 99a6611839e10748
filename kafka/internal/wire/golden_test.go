package wire

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/kafka/internal/batch"
	"github.com/stretchr/testify/require"
)

// calls are the requests whose bytes testdata/golden.txt has, by its names.
type call struct {
	key int16
	do  func(ctx context.Context, c *Conn) (any, error)
}

func calls() map[string]call {
	three := []TopicPartition{{"t", 0}, {"t", 1}, {"u", 7}}
	x := Txn{"x", ProducerID{4000, 7}}
	fail := func(f func(context.Context, *Conn) error) func(context.Context, *Conn) (any, error) {
		return func(ctx context.Context, c *Conn) (any, error) { return nil, f(ctx, c) }
	}
	return map[string]call{
		"Metadata":    {keyMetadata, func(ctx context.Context, c *Conn) (any, error) { return c.Metadata(ctx, []string{"t", "u"}) }},
		"MetadataAll": {keyMetadata, func(ctx context.Context, c *Conn) (any, error) { return c.Metadata(ctx, nil) }},
		"ListOffsets": {keyListOffsets, func(ctx context.Context, c *Conn) (any, error) { return c.ListOffsets(ctx, Latest, true, three) }},
		"Fetch": {keyFetch, func(ctx context.Context, c *Conn) (any, error) {
			return c.Fetch(ctx, FetchRequest{TopicPartition: TopicPartition{"t", 3}, Offset: 77, Committed: true, MaxBytes: 1000, Wait: 250 * time.Millisecond, MaxAnswer: 2000})
		}},
		"OffsetCommit": {keyOffsetCommit, fail(func(ctx context.Context, c *Conn) error {
			return c.OffsetCommit(ctx, "g", []GroupOffset{{three[0], 50, "m"}, {three[1], 51, "m"}, {three[2], 57, "m"}})
		})},
		"Produce": {keyProduce, fail(func(ctx context.Context, c *Conn) error {
			faults, err := c.Produce(ctx, "x", []Batch{{TopicPartition{"t", 3}, []byte("batch")}}, 5*time.Second)
			return errors.Join(append(faults, err)...)
		})},
		"ProducePlain": {keyProduce, fail(func(ctx context.Context, c *Conn) error {
			faults, err := c.Produce(ctx, "", []Batch{{TopicPartition{"t", 3}, []byte("batch")}}, 5*time.Second)
			return errors.Join(append(faults, err)...)
		})},
		"FindCoordinator": {keyFindCoordinator, func(ctx context.Context, c *Conn) (any, error) {
			return c.FindCoordinator(ctx, TransactionCoordinator, "x")
		}},
		"InitProducerId":      {keyInitProducerID, func(ctx context.Context, c *Conn) (any, error) { return c.InitProducerID(ctx, "x", time.Minute) }},
		"InitProducerIdPlain": {keyInitProducerID, func(ctx context.Context, c *Conn) (any, error) { return c.InitProducerID(ctx, "", time.Minute) }},
		"InitProducerIdNext":  {keyInitProducerID, func(ctx context.Context, c *Conn) (any, error) { return c.NextEpoch(ctx, x, time.Minute) }},
		"AddPartitionsToTxn":  {keyAddPartitions, fail(func(ctx context.Context, c *Conn) error { return c.AddPartitionsToTxn(ctx, x, three) })},
		"AddOffsetsToTxn":     {keyAddOffsets, fail(func(ctx context.Context, c *Conn) error { return c.AddOffsetsToTxn(ctx, x, "g") })},
		"EndTxn":              {keyEndTxn, fail(func(ctx context.Context, c *Conn) error { return c.EndTxn(ctx, x, true) })},
		"EndTxnAbort":         {keyEndTxn, fail(func(ctx context.Context, c *Conn) error { return c.EndTxn(ctx, x, false) })},
		"TxnOffsetCommit": {keyTxnOffsetCommit, fail(func(ctx context.Context, c *Conn) error {
			return c.TxnOffsetCommit(ctx, x, "g", GroupOffset{TopicPartition{"t", 3}, 12, "m"})
		})},
		"OffsetFetch":    {keyOffsetFetch, func(ctx context.Context, c *Conn) (any, error) { return c.StableOffsets(ctx, "g", three) }},
		"OffsetFetchAll": {keyOffsetFetch, func(ctx context.Context, c *Conn) (any, error) { return c.StableOffsets(ctx, "g", nil) }},
		"OffsetForLeaderEpoch": {keyEpochEnd, func(ctx context.Context, c *Conn) (any, error) {
			return c.EpochEnds(ctx, []EpochQuestion{{three[0], 4}, {three[1], 5}, {three[2], 11}})
		}},
		"ListGroups": {keyListGroups, func(ctx context.Context, c *Conn) (any, error) { return c.ListGroups(ctx) }},
		"ApiVersions": {keyAPIVersions, func(ctx context.Context, c *Conn) (any, error) {
			c.versions = nil
			err := c.learn(ctx)
			return c.versions, err
		}},
	}
}

// TestRequestBytes: every request, in every version that is spoken, is byte for byte
// what another client sends.
func TestRequestBytes(t *testing.T) {
	all := calls()
	for _, g := range goldens(t, "request") {
		x, ok := all[g.name]
		require.True(t, ok, g.name)
		c, m := talking(x.key, g.version, nil)
		_, err := x.do(t.Context(), c)
		require.Error(t, err, "an answer of nothing")
		require.Equal(t, hex.EncodeToString(g.bytes), hex.EncodeToString(m.sent), "%s v%d", g.name, g.version)
	}
}

// understood is what the answers of testdata/golden.txt say, the same in every version
// but where a function of the version says otherwise.
func understood() map[string]func(version int16) (any, error) {
	is := func(v any, err error) func(int16) (any, error) { return func(int16) (any, error) { return v, err } }
	ok := is(nil, nil)
	is1 := func(p, leader int32) Partition { return Partition{Number: p, Leader: leader} }
	topics := func(id string) []Topic {
		return []Topic{
			{Name: "t", ID: id, Partitions: []Partition{is1(0, 1), is1(1, 2), {2, -1, LeaderNotAvailable}}},
			{Name: "u", Err: UnknownTopic},
			{Name: "__w", Internal: true},
		}
	}
	return map[string]func(version int16) (any, error){
		"ApiVersions/0": is(map[int16][2]int16{0: {3, 13}, 1: {4, 18}, 18: {0, 4}}, nil),
		"ApiVersions/1": is(map[int16][2]int16(nil), Error(35)),
		"Metadata/0": func(version int16) (any, error) {
			id := ""
			if version >= metadataIDs {
				id = strings.Repeat("0", 31) + "9"
			}
			return &Metadata{Brokers: map[int32]string{1: "host1:9091", 2: "host2:9092"}, Topics: topics(id)}, nil
		},
		"Metadata/1": is(&Metadata{Brokers: map[int32]string{}}, nil),
		"ListOffsets/0": func(version int16) (any, error) {
			epoch := int32(-1)
			if version >= 4 {
				epoch = 6
			}
			return []OffsetAnswer{{TopicPartition{"t", 0}, 70, epoch, nil}, {TopicPartition{"t", 1}, -1, -1, NotLeader}}, nil
		},
		"ListOffsets/1": is([]OffsetAnswer(nil), nil),
		"Fetch/0": func(version int16) (any, error) {
			a := FetchAnswer{Throttle: 9 * time.Millisecond, HighWatermark: 10, LastStable: 9, LogStart: -1,
				Aborted: []batch.Aborted{{Producer: 4, First: 6}, {Producer: 5, First: 8}}, Batches: []byte("abc")}
			if version >= 5 {
				a.LogStart = 2
			}
			return a, nil
		},
		"Fetch/1":              is(FetchAnswer{Err: OffsetOutOfRange, HighWatermark: -1, LastStable: -1, LogStart: -1}, nil),
		"Fetch/2":              is(FetchAnswer{Throttle: 800 * time.Millisecond, Missing: true, LogStart: -1}, nil),
		"Fetch/3":              is(FetchAnswer{Missing: true, LogStart: -1}, Error(70)),
		"OffsetCommit/0":       ok,
		"OffsetCommit/1":       is(nil, UnknownMember),
		"Produce/0":            ok,
		"Produce/1":            is(nil, MessageTooLarge),
		"Produce/2":            is(nil, errAny), // without the partition
		"FindCoordinator/0":    is("host:9092", nil),
		"FindCoordinator/1":    is("", CoordinatorUnavailable),
		"InitProducerId/0":     is(ProducerID{4000, 7}, nil),
		"InitProducerId/1":     is(ProducerID{}, ConcurrentTransactions),
		"InitProducerIdNext/0": is(ProducerID{4000, 8}, nil),
		"InitProducerIdNext/1": is(ProducerID{}, ProducerFenced),
		"AddPartitionsToTxn/0": ok,
		"AddPartitionsToTxn/1": is(nil, Error(29)),
		"AddPartitionsToTxn/2": is(nil, Error(29)),
		"AddPartitionsToTxn/3": is(nil, Error(operationNotAttempted)),
		"AddOffsetsToTxn/0":    ok,
		"AddOffsetsToTxn/1":    is(nil, InvalidProducerEpoch),
		"EndTxn/0":             ok,
		"EndTxn/1":             is(nil, InvalidTxnState),
		"TxnOffsetCommit/0":    ok,
		"TxnOffsetCommit/1":    is(nil, CoordinatorUnavailable),
		"OffsetFetch/0":        is([]GroupOffset{{TopicPartition{"t", 0}, 30, "m"}, {TopicPartition{"t", 1}, -1, ""}}, nil),
		"OffsetFetch/1":        is([]GroupOffset(nil), UnstableOffset),
		"OffsetFetch/2":        is([]GroupOffset(nil), GroupNotFound),
		"OffsetForLeaderEpoch/0": is([]EpochEnd{
			{TopicPartition{"t", 0}, 4, 90, nil}, {TopicPartition{"t", 1}, -1, -1, nil}, {TopicPartition{"t", 2}, -1, -1, NotLeader},
		}, nil),
		"ListGroups/0":           is([]string{"a", "statemill.r.out"}, nil),
		"ListGroups/1":           is([]string(nil), CoordinatorUnavailable),
		"OffsetForLeaderEpoch/1": is([]EpochEnd(nil), nil),
	}
}

// errAny stands for an answer that is no answer.
const errAny Error = -1000

// TestAnswers: what a broker answers, as another implementation writes it, is
// understood in every version; a broker's error is that error, and the connection
// stays good.
func TestAnswers(t *testing.T) {
	all, want := calls(), understood()
	for _, g := range goldens(t, "answer") {
		name, _, _ := strings.Cut(g.name, "/")
		what, ok := want[g.name]
		require.True(t, ok, g.name)
		value, fault := what(g.version)
		c, _ := talking(all[name].key, g.version, g.bytes)
		got, err := all[name].do(t.Context(), c)
		if fault == errAny {
			require.ErrorAs(t, err, new(*AlienError), "%s v%d", g.name, g.version)
			require.True(t, c.Broken())
			continue
		}
		require.Equal(t, value, got, "%s v%d", g.name, g.version)
		if fault == nil {
			require.NoError(t, err, "%s v%d", g.name, g.version)
		} else {
			require.ErrorIs(t, err, fault, "%s v%d", g.name, g.version)
		}
		require.False(t, c.Broken(), "%s v%d", g.name, g.version)
	}
}

// TestEveryCutAnswer: an answer that is cut at any byte is an error that names the
// broker, and the connection is given up.
func TestEveryCutAnswer(t *testing.T) {
	all := calls()
	for _, g := range goldens(t, "answer") {
		name, _, _ := strings.Cut(g.name, "/")
		for n := range len(g.bytes) {
			if name == "ApiVersions" && n >= 2 && g.bytes[1] != 0 {
				break // an error code is all that is read
			}
			if g.name == "Fetch/3" && n >= 6 {
				break
			}
			if name == "Produce" && n >= len(g.bytes)-4 {
				break // nobody reads how long to wait
			}
			c, _ := talking(all[name].key, g.version, g.bytes[:n])
			_, err := all[name].do(t.Context(), c)
			require.ErrorAs(t, err, new(*AlienError), "%s v%d: %d of %d bytes", g.name, g.version, n, len(g.bytes))
			require.ErrorContains(t, err, "test:1")
			if name != "ApiVersions" {
				require.True(t, c.Broken(), "%s v%d: %d of %d bytes", g.name, g.version, n, len(g.bytes))
			}
		}
	}
}

// TestVersionsNotSpoken: each request says by name which versions it lacks.
func TestVersionsNotSpoken(t *testing.T) {
	named := map[string]string{"MetadataAll": "Metadata", "ProducePlain": "Produce", "InitProducerIdPlain": "InitProducerId", "InitProducerIdNext": "InitProducerId", "EndTxnAbort": "EndTxn", "OffsetFetchAll": "OffsetFetch"}
	for name, x := range calls() {
		if name == "ApiVersions" {
			continue
		}
		if n := named[name]; n != "" {
			name = n
		}
		for _, version := range []int16{-1, 99} {
			c, m := talking(x.key, version, nil)
			_, err := x.do(t.Context(), c)
			require.ErrorContains(t, err, " of "+name+", Statemill")
			require.ErrorContains(t, err, "test:1")
			require.Empty(t, m.sent)
			require.False(t, c.Broken())
		}
		c, _ := talking(1000, 0, nil)
		_, err := x.do(t.Context(), c)
		require.ErrorContains(t, err, name)
		require.Equal(t, name, requestName(x.key))
	}
	require.Equal(t, "ApiVersions", requestName(keyAPIVersions))
	require.Equal(t, "request 99", requestName(99))
	c, _ := talking(keyEpochEnd, 3, nil)
	require.True(t, c.TellsEpochs())
	c, _ = talking(keyEpochEnd, 2, nil) // only brokers may ask
	require.False(t, c.TellsEpochs())
	c, _ = talking(keyFetch, 4, nil)
	require.False(t, c.TellsEpochs())
}
