package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/stretchr/testify/require"
)

// TestLeaderIsKilled: of three real brokers the one that matters most is killed with
// SIGKILL in mid-batch, in rounds: the leader of a partition while it is computed and
// while it is fetched, the leader of an output while it is written, the coordinator of
// the transaction as it is to commit, and the controller. The job lives through all of
// it, commits while the broker is down, and in the end each record is counted once:
// its output is what Kafka's console reads of committed records, and another client
// has counted the input. // report 28
func TestLeaderIsKilled(t *testing.T) {
	n := realNodes(t, 3)
	ctx, end := context.WithTimeout(t.Context(), 5*time.Minute)
	defer end()
	n.ctx = ctx
	const partitions, count, batch = 6, 6000, 250
	config := []string{"min.insync.replicas=2"}
	in, out := n.topic(partitions, config...), n.topic(3, config...)
	want := n.words(in, partitions, 20, count)
	require.NoError(t, n.whole())

	k := &killer{nodes: n, end: end}
	k.risen = sync.NewCond(&k.mu)
	hit := func(what string, epoch uint64, victim func() (int32, error)) {
		k.aims = append(k.aims, aim{what, epoch, victim})
	}
	leaderOf := func(topic string, partition int32) func() (int32, error) {
		return func() (int32, error) { return n.leader(topic, partition) }
	}
	hit("compute", 2, leaderOf(in, 0))
	if !testing.Short() {
		hit("produce", 5, leaderOf(out, 1))
	}
	hit("endTxn", 8, func() (int32, error) { return n.coordinator(k.transactionalID()) })
	hit("fetch", 11, leaderOf(in, 3))
	if !testing.Short() { // a controller takes long to come back
		hit("compute", 14, func() (int32, error) { return 1, nil })
	}

	dialer := onRequests(k.asked)
	const patient = 30 * time.Second
	err := n.exactly(exactJob{in: in, out: out,
		source: []kafka.SourceOption{kafka.Dialer(dialer), kafka.RetryFor(patient), kafka.FetchMaxBytes(1 << 10), kafka.ReadAhead(0)},
		sink:   []kafka.SinkOption{kafka.Dialer(dialer), kafka.RetryFor(patient)},
		each:   func(kafka.Record) error { k.at("compute"); return nil },
	}, dstream.WithCheckpoint(t.TempDir()), dstream.WithMaxRecordsPerBatch(batch), dstream.WithListener(dstream.Listener{
		BatchStarted:   func(b dstream.Batch) { k.began(b.Epoch) },
		BatchCompleted: func(p dstream.Progress) { k.committed(p) },
	}))
	k.wait.Wait()
	require.NoError(t, k.failed)
	require.NoError(t, err)
	require.Empty(t, k.aims, "rounds that were not reached")
	require.NoError(t, n.whole())

	read := map[string]int{}
	for _, x := range n.otherRead(in) {
		read[string(x.Value)]++
	}
	require.Equal(t, want, read, "the input, as another client reads it")
	lines := n.consoleOrOther(out, count)
	require.Len(t, lines, count)
	n.requireTotals(want, lines)
}

// aim is a broker to kill at a step of an epoch, or of the first later one that comes
// there.
type aim struct {
	step   string
	epoch  uint64
	victim func() (int32, error)
}

// killer kills a broker in the middle of a step, and starts it again when the job has
// committed without it.
type killer struct {
	*nodes
	end  context.CancelFunc
	wait sync.WaitGroup

	mu     sync.Mutex
	risen  *sync.Cond
	aims   []aim
	epoch  uint64
	root   string
	down   int32 // 0: nobody
	rising bool  // it is being started
	failed error
}

func (k *killer) transactionalID() string { return fmt.Sprintf("statemill.%s.out", k.root) }

func (k *killer) began(epoch uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.epoch = epoch
}

// at kills, if it is time to. Whoever calls it stands still meanwhile.
func (k *killer) at(step string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	due := func() bool { return len(k.aims) > 0 && k.aims[0].step == step && k.epoch >= k.aims[0].epoch }
	for due() && k.rising {
		k.risen.Wait()
	}
	if !due() || k.down != 0 || k.failed != nil {
		return
	}
	next := k.aims[0]
	k.aims = k.aims[1:]
	node, err := next.victim()
	if err == nil {
		err = k.kill(node)
	}
	if err != nil {
		k.fail(err)
		return
	}
	k.Logf("epoch %d, %s: broker %d is killed", k.epoch, step, node)
	k.down = node
	if node == 1 { // without a controller nobody takes over
		k.bringBack()
	}
}

// committed: an epoch is done. If a broker is down it was done without it.
func (k *killer) committed(p dstream.Progress) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.root = p.Checkpoint.Root
	if k.down != 0 && !k.rising {
		k.Logf("epoch %d is committed without broker %d", p.Batch.Epoch, k.down)
		k.bringBack()
	}
}

// bringBack starts the broker beside the job. k.mu is held.
func (k *killer) bringBack() {
	k.rising = true
	node := k.down
	k.wait.Go(func() {
		err := k.start(node)
		if err == nil {
			err = k.whole()
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		defer k.risen.Broadcast()
		if k.down, k.rising = 0, false; err != nil {
			k.fail(err)
		}
	})
}

// fail ends the test: what cannot be killed or started is no fault of the job's.
func (k *killer) fail(err error) {
	k.failed = errors.Join(k.failed, err)
	k.end()
}

// asked is told of each request before it is sent.
func (k *killer) asked(number uint16, _ []byte) {
	switch number {
	case produceRequest:
		k.at("produce")
	case fetchRequest:
		k.at("fetch")
	case endTxnRequest:
		k.at("endTxn")
	}
}
