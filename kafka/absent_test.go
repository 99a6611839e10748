package kafka

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// dark is a broker that for a while knows no topic: one with the same ids as before.
func (b *fakeBroker) dark(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	until := clock.System().Now().Add(d)
	logs := maps.Clone(b.logs)
	clear(b.logs)
	b.fault = func(int16, int) (int16, string) {
		if logs != nil && !clock.System().Now().Before(until) {
			maps.Copy(b.logs, logs)
			logs = nil
		}
		return 0, ""
	}
}

// readToEnd reads until nothing more comes, and gives how many records that are.
func readToEnd(t *testing.T, s *kafkaSource) (n int, p source.Plan) {
	for range 4 {
		var got []string
		p, got = readAll(t, s, source.Limits{})
		n += len(got)
		require.NoError(t, clock.Wait(t.Context(), clock.System(), time.Second)) // of the bubble
	}
	return n, p
}

// ways are the options that read topic t.
func ways() map[string]SourceOption {
	return map[string]SourceOption{"by name": Topics("t"), "by pattern": TopicPattern("t"), "by partition": Partitions(TopicPartition{"t", 0})}
}

// TestTopicUnknownForAWhile: brokers that know no topic for two seconds, at a start or
// under a job, cost nothing: not the job, and not a record that is counted twice. // report 22
func TestTopicUnknownForAWhile(t *testing.T) {
	for name, way := range ways() {
		for _, on := range []bool{false, true} {
			for _, at := range []string{"open", "plan", "read"} {
				t.Run(fmt.Sprintf("%s, %s, ContinueOnLoss %t", at, name, on), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b, pipe := silentBroker(t)
						b.log("t", 0, many(0, 10, 1, 10)...)
						opts := []SourceOption{Brokers(b.addr()), way, FromEarliest(), RefreshEvery(0), ReadAhead(0), pipe.dialer()}
						if on {
							opts = append(opts, ContinueOnLoss())
						}
						s := NewSource(opts...).(*kafkaSource)
						require.NoError(t, s.Open(t.Context(), nil))
						defer func() { require.NoError(t, s.Close()) }()
						n := 0
						switch at {
						case "open":
							var p source.Plan
							n, p = readToEnd(t, s)
							require.NoError(t, s.Close())
							b.dark(1900 * time.Millisecond)
							require.NoError(t, s.Open(t.Context(), &p))
						case "plan":
							n, _ = readToEnd(t, s)
							b.dark(1900 * time.Millisecond)
						case "read":
							p, err := s.Plan(t.Context(), source.Limits{})
							require.NoError(t, err)
							b.dark(4 * time.Second)
							require.NoError(t, s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { n++; return nil }))
							require.Equal(t, 10, n, "what is there was not passed over")
						}
						more, p := readToEnd(t, s)
						require.Equal(t, 10, n+more)
						require.Equal(t, []source.Range{{Partition: "t-0", From: 10, Until: 10, Epoch: p.Ranges[0].Epoch, Mark: "0"}}, p.Ranges)
						require.Zero(t, s.Report().Counters["lost_records"])
						if on && at != "read" {
							require.EqualValues(t, []int64{1, 1}, []int64{s.Report().Counters["lost_topics"], s.Report().Counters["returned_topics"]})
							says(t, s, `topic "t" is not there any more`, "deleted", "do not know it yet", "partition 0 up to offset 10")
							says(t, s, `topic "t" is there again`, "the same", "partition 0 up to offset 10")
						} else {
							require.Empty(t, s.Report().Notices)
						}
					})
				})
			}
		}
	}
}

// TestAbsentTopicIsRemembered: while it is away its id and position stay in the plans, and
// so in the checkpoint, through another start; back, it goes on there, or, if it is another
// topic by then, from its first offset, and what was not read of the old one is lost. // report 22
func TestAbsentTopicIsRemembered(t *testing.T) {
	for name, way := range ways() {
		for _, same := range []bool{true, false} {
			for _, restart := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, the same %t, another start %t", name, same, restart), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b, pipe := silentBroker(t)
						b.log("t", 0, many(0, 10, 1, 10)...)
						start := func(last *source.Plan) *kafkaSource {
							s := NewSource(Brokers(b.addr()), way, FromEarliest(), RefreshEvery(time.Minute), ContinueOnLoss(), pipe.dialer(), Group("g")).(*kafkaSource)
							require.NoError(t, s.Open(t.Context(), last))
							return s
						}
						s := start(nil)
						readAll(t, s, source.Limits{Records: 7})
						b.dark(time.Hour)
						p, got := readAll(t, s, source.Limits{})
						require.Empty(t, got)
						require.Equal(t, []source.Range{{Partition: "t-0", From: 7, Until: 7, Epoch: p.Ranges[0].Epoch, Mark: "0"}}, p.Ranges)
						says(t, s, `topic "t" is not there any more`, "at least 3 records of it were not read")
						require.Zero(t, s.Report().Counters["lost_records"], "that is not known yet")
						if restart {
							require.NoError(t, s.Close())
							b.mu.Lock()
							for _, offsets := range b.writes.groups { // as a broker forgets them, with the topic
								clear(offsets)
							}
							b.mu.Unlock()
							s = start(&p)
							p, got = readAll(t, s, source.Limits{})
							require.Empty(t, got)
							require.EqualValues(t, 7, p.Ranges[0].Until)
						}
						defer func() { require.NoError(t, s.Close()) }()
						synctest.Wait()
						b.mu.Lock()
						for _, offsets := range b.writes.groups {
							if restart {
								require.Empty(t, offsets, "a group takes nothing of a topic that is not there")
							}
						}
						b.mu.Unlock()
						if !same {
							b.mu.Lock()
							b.ids["t"] = 9
							b.mu.Unlock()
						}
						require.NoError(t, clock.Wait(t.Context(), clock.System(), time.Hour))
						n, p := readToEnd(t, s)
						require.EqualValues(t, 10, p.Ranges[0].Until)
						if same {
							require.Equal(t, 3, n)
							require.EqualValues(t, 1, s.Report().Counters["returned_topics"])
							return
						}
						require.Equal(t, 10, n)
						require.Zero(t, s.Report().Counters["returned_topics"])
						says(t, s, `topic "t" was deleted and made again`, "partition 0 up to offset 7")
						require.EqualValues(t, 1, s.Report().Counters["lost_topics"], "once")
						if !restart { // a new run has not seen its end
							require.EqualValues(t, 3, s.Report().Counters["lost_records"])
						}
					})
				})
			}
		}
	}
}

// TestTopicDeletedInMidBatch: of a topic that stays away, what was planned is passed over
// and told, by choice; and the ranges of one topic wait for it together.
func TestTopicDeletedInMidBatch(t *testing.T) { // report 22
	for _, redo := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b, pipe := silentBroker(t)
			for n := range int32(8) {
				b.log("t", n, many(0, 10, 1, 10)...)
			}
			opts := []SourceOption{Brokers(b.addr()), Topics("t"), FromEarliest(), ReadAhead(0), pipe.dialer(), ContinueOnLoss()}
			s := NewSource(opts...).(*kafkaSource)
			require.NoError(t, s.Open(t.Context(), nil))
			p, err := s.Plan(t.Context(), source.Limits{})
			require.NoError(t, err)
			b.dark(time.Hour)
			if redo { // by another run
				require.NoError(t, s.Close())
				s = NewSource(opts...).(*kafkaSource)
				require.NoError(t, s.Open(t.Context(), &p))
			}
			defer func() { require.NoError(t, s.Close()) }()
			require.Less(t, took(func() {
				for _, r := range p.Ranges {
					require.NoError(t, read(t, s, r))
				}
			}), 30*time.Second)
			require.EqualValues(t, 80, s.Report().Counters["lost_records"])
			says(t, s, `topic "t" partition 7`, "offsets 0 to 9")
		})
	}
}
