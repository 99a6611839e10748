package kafkatest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// nodes is a real cluster whose brokers a test kills and starts again. Node 1 is its
// controller: while it is down nobody else becomes a leader.
type nodes struct {
	*rig
	dir   string
	count int
	down  map[int32]bool
}

// realNodes is the cluster, if there is one of so many brokers. What a test leaves
// down is up again for the next one.
func realNodes(t *testing.T, least int) *nodes {
	r := realRig(t)
	n := &nodes{rig: r, dir: os.Getenv("STATEMILL_KAFKA_DIR"), count: len(strings.Split(r.addr, ",")), down: map[int32]bool{}}
	if n.dir == "" {
		t.Skip("needs the broker's folder: STATEMILL_KAFKA_DIR is not set (make test-kafka sets it)")
	}
	if n.count < least {
		t.Skipf("needs %d real brokers, there is %d (KAFKA_NODES=3 make test-kafka starts three)", least, n.count)
	}
	if n.count >= 3 {
		r.replicas = 3
	}
	t.Cleanup(func() {
		for node := range n.down {
			require.NoError(t, n.script("start.sh", node))
		}
	})
	return n
}

// script runs one of the broker's scripts for a node. It is not cut short with the
// test: the next one needs the cluster.
func (n *nodes) script(name string, node int32) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "broker/"+name, n.dir, strconv.Itoa(int(node)))
	cmd.Env = append(os.Environ(), "KAFKA_SIGNAL=KILL")
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s of node %d: %w: %s", name, node, err, text)
	}
	return nil
}

// kill ends a broker with SIGKILL.
func (n *nodes) kill(node int32) error {
	n.down[node] = true
	return n.script("stop.sh", node)
}

// start brings a broker back.
func (n *nodes) start(node int32) error {
	err := n.script("start.sh", node)
	if err == nil {
		delete(n.down, node)
	}
	return err
}

// leader is the broker that leads a partition.
func (n *nodes) leader(topic string, partition int32) (int32, error) {
	q := kmsg.NewPtrMetadataRequest()
	q.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	a, err := q.RequestWith(n.ctx, n.admin)
	if err != nil {
		return 0, err
	}
	for _, p := range a.Topics[0].Partitions {
		if p.Partition == partition {
			return p.Leader, kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return 0, kerr.UnknownTopicOrPartition
}

// coordinator is the broker that coordinates a transactional id.
func (n *nodes) coordinator(id string) (int32, error) {
	q := kmsg.NewPtrFindCoordinatorRequest()
	q.CoordinatorType, q.CoordinatorKeys = 1, []string{id}
	a, err := q.RequestWith(n.ctx, n.admin)
	if err != nil {
		return 0, err
	}
	return a.Coordinators[0].NodeID, kerr.ErrorForCode(a.Coordinators[0].ErrorCode)
}

// whole waits until every partition of every topic has a leader and all replicas are
// in sync: only then can another broker be killed without a loss.
func (n *nodes) whole() error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		a, err := kmsg.NewPtrMetadataRequest().RequestWith(n.ctx, n.admin)
		if err == nil && len(a.Brokers) == n.count && inSync(a) {
			return nil
		}
		select {
		case <-tick.C:
		case <-n.ctx.Done():
			return n.ctx.Err()
		}
	}
}

func inSync(a *kmsg.MetadataResponse) bool {
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			if p.Leader < 0 || len(p.ISR) < len(p.Replicas) {
				return false
			}
		}
	}
	return true
}

// move makes a broker the leader of a topic's partition 0, and waits until all know it.
func (n *nodes) move(topic string, node int32) {
	assign := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	assign.TimeoutMillis = 30_000
	x := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	x.Replicas = []int32{node, node%3 + 1, (node+1)%3 + 1}
	assign.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{x}}}
	_, err := assign.RequestWith(n.ctx, n.admin)
	require.NoError(n, err)
	elect := kmsg.NewPtrElectLeadersRequest() // the preferred one
	elect.TimeoutMillis = 30_000
	elect.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: topic, Partitions: []int32{0}}}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := elect.RequestWith(n.ctx, n.admin)
		if now, lerr := n.leader(topic, 0); err == nil && lerr == nil && now == node {
			return
		}
		select {
		case <-tick.C:
		case <-n.ctx.Done():
			require.NoError(n, fmt.Errorf("broker %d does not become the leader: %w", node, n.ctx.Err()))
		}
	}
}
