package kafkatest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// seeds runs histories: those of the seeds 1, 2, 3 … up to a number, or, where
// STATEMILL_HISTORIES says for how long, those from now on. STATEMILL_HISTORY_SEED
// runs one history again. What is planned often must have happened in one of them.
func seeds(t *testing.T, number int, run func(seed uint64, all *tally)) {
	all, enough := newTally(), enoughOfNew
	defer func() { all.require(t, enough) }()
	if text := os.Getenv("STATEMILL_HISTORY_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "STATEMILL_HISTORY_SEED")
		run(seed, all)
		return
	}
	text := os.Getenv("STATEMILL_HISTORIES")
	if text == "" {
		enough = enoughOfFixed
		for i := range number {
			run(uint64(i+1), all)
		}
		return
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "STATEMILL_HISTORIES")
	began, n := time.Now(), 0
	for seed := uint64(began.UnixNano()); time.Since(began) < d && !t.Failed(); seed++ {
		run(seed, all)
		n++
	}
	t.Logf("%d histories in %v", n, time.Since(began).Round(time.Second))
}

// again is the command that runs the plan of a seed once more.
func (s setting) again(seed uint64) string {
	command := "go test ./test/kafka -run TestHistoriesEmbedded -count=1 -v"
	switch s.nodes {
	case 0:
	case 1:
		command = "make test-kafka ARGS='-run TestHistories$$'"
	default:
		command = "make test-kafka3 LEADERS='TestHistories$$'"
	}
	return fmt.Sprintf("STATEMILL_HISTORY_SEED=%d %s", seed, command)
}

// history makes the topics and the plan of a seed, and runs it. Whoever it fails for
// finds the seed, how to run it again, and the plan in the log.
func (r *rig) history(seed uint64, s setting, patient time.Duration, brokers historyBrokers, all *tally) {
	random := rand.New(rand.NewPCG(seed, 0))
	s.objects = random.IntN(2) == 0
	steps := planHistory(random, s)
	began := time.Now()
	defer func() {
		if r.Failed() {
			r.Logf("seed %d, object store %t; run it again: %s", seed, s.objects, s.again(seed))
			for i, x := range steps {
				r.Logf("%3d %v", i+1, x)
			}
		}
	}()
	config := []string{}
	if r.replicas > 1 {
		config = append(config, "min.insync.replicas=2")
	}
	h := &history{rig: r, all: all, random: rand.New(rand.NewPCG(seed, 1)), brokers: brokers, patient: patient,
		in: r.topic(historyPartitions, config...), out: r.topic(2, config...), changes: r.topic(2, config...),
		table: r.topic(1, append(config, "cleanup.policy=compact", "segment.ms=100", "min.cleanable.dirty.ratio=0.001",
			"max.compaction.lag.ms=100", "min.compaction.lag.ms=0")...)}
	if s.objects {
		h.objects = vfs.NewObjects()
	} else {
		h.disk = vfs.NewMem()
	}
	defer func() { // whatever failed, no process stays
		for _, l := range []*historyLife{h.now, h.asleep} {
			if l != nil {
				l.cancel()
				l.cut()
			}
		}
		if h.asleep != nil {
			h.wake.Thaw()
		}
	}()
	all.plans(steps)
	if r.real { // the broker's own cleaner comes by itself
		all.planned["compact"]++
	}
	h.run(steps)
	gone := h.compacted()
	if gone > 0 {
		h.happened("compact")
	}
	r.Logf("seed %d: %d steps, %d lives, %d records, %d of them aborted and %d lost, %d compacted away, %v",
		seed, len(steps), h.lives, h.numbers, h.model.are(aborted), h.model.are(lost), gone, time.Since(began).Round(time.Millisecond))
}

// embeddedHistory is what each of the histories of TestHistoriesEmbedded may do.
var embeddedHistory = setting{steps: 40}

// TestHistoriesEmbedded: many short histories on a cluster of three in the process,
// whose leaders and coordinators move: the state is the model's, and each output is
// there once.
func TestHistoriesEmbedded(t *testing.T) {
	number := fixedHistories
	if testing.Short() {
		number = 4
	}
	seeds(t, number, func(seed uint64, all *tally) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			c, err := kfake.NewCluster(kfake.NumBrokers(3))
			require.NoError(t, err)
			t.Cleanup(c.Close)
			r := newRig(t, strings.Join(c.ListenAddrs(), ","), false)
			b := &fakeBrokers{r, c}
			b.keepLogs(seed%2 == 0)
			r.history(seed, embeddedHistory, 20*time.Second, b, all)
		})
	})
}

// TestHistories: the same on real brokers, which are killed and come back: one alone,
// or, of three, the leader of a partition while the others go on. The log of the table
// is compacted meanwhile, by the broker's own cleaner.
func TestHistories(t *testing.T) {
	number := 2
	if realNodes(t, 1).count >= 3 {
		number = 3
	}
	seeds(t, number, func(seed uint64, all *tally) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			n := realNodes(t, 1)
			ctx, end := context.WithTimeout(t.Context(), 5*time.Minute)
			defer end()
			n.ctx = ctx
			require.NoError(t, n.whole())
			s := setting{steps: 30, nodes: n.count, kills: 1}
			if n.count >= 3 {
				s.kills = 2
			}
			n.history(seed, s, time.Minute, &realBrokers{n}, all)
		})
	})
}

// realBrokers is a cluster of processes.
type realBrokers struct{ *nodes }

func (b *realBrokers) compact()                      { panic("not planned") }
func (b *realBrokers) coordinators()                 { panic("not planned") }
func (b *realBrokers) move(string, int, uint64) bool { panic("not planned") }

// kill ends the leader of a partition; not the controller, unless it is alone.
func (b *realBrokers) kill(topic string, partition int) error {
	if err := b.whole(); err != nil {
		return err
	}
	node := int32(1)
	if b.count > 1 {
		var err error
		if node, err = b.leader(topic, int32(partition)); err != nil {
			return err
		}
		node = max(node, 2)
	}
	return b.nodes.kill(node)
}

// start brings back who is down.
func (b *realBrokers) start() error {
	for node := range b.down {
		if err := b.nodes.start(node); err != nil {
			return err
		}
	}
	return b.whole()
}

// fakeBrokers is a cluster in the process.
type fakeBrokers struct {
	*rig
	*kfake.Cluster
}

// keepLogs answers who asks whether a log has lost records: none has, or nothing is known
// of an epoch as late. The cluster's own answer is of the batches that compaction and
// retention have left.
func (b *fakeBrokers) keepLogs(unknown bool) {
	b.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		a := q.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		for _, t := range q.(*kmsg.OffsetForLeaderEpochRequest).Topics {
			x := kmsg.NewOffsetForLeaderEpochResponseTopic()
			x.Topic = t.Topic
			for _, p := range t.Partitions {
				y := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				if y.Partition = p.Partition; !unknown { // else -1 and -1
					y.LeaderEpoch, y.EndOffset = p.LeaderEpoch, math.MaxInt64
				}
				x.Partitions = append(x.Partitions, y)
			}
			a.Topics = append(a.Topics, x)
		}
		return a, nil, true
	})
}

func (b *fakeBrokers) compact()      { b.Compact() }
func (b *fakeBrokers) coordinators() { b.RehashCoordinators() }
func (b *fakeBrokers) move(topic string, partition int, to uint64) bool {
	if b.PartitionInfo(topic, int32(partition)) == nil {
		partition = 0
	}
	before := b.LeaderFor(topic, int32(partition))
	require.NoError(b, b.MoveTopicPartition(topic, int32(partition), int32(to/8%3)))
	return b.LeaderFor(topic, int32(partition)) != before
}
func (b *fakeBrokers) kill(string, int) error { panic("not planned") }
func (b *fakeBrokers) start() error           { panic("not planned") }
