package kafkatest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/sink"
	"github.com/stretchr/testify/require"
)

// lateKinds are the requests of a transaction.
var lateKinds = map[string]lateRequest{
	"InitProducerId":     {number: 22, nth: 1},
	"AddPartitionsToTxn": {number: 24, nth: 1},
	"Produce":            {number: produceRequest, nth: 1},
	"second Produce":     {number: produceRequest, nth: 2},
	"AddOffsetsToTxn":    {number: 25, nth: 1},
	"TxnOffsetCommit":    {number: 28, nth: 1},
	"EndTxn of a commit": {number: endTxnRequest, nth: 1},
	"EndTxn of an abort": {number: endTxnRequest, nth: 2},
}

// TestLateRequests: a request of an exactly-once sink that nobody answers arrives after it
// was asked again with success, at each later moment of four transactions: nothing is there
// twice, nothing is lost, and the memory does not go back. // P2, report 31
func TestLateRequests(t *testing.T) {
	onEach(t, func(r *rig) {
		if strings.Contains(r.addr, ",") {
			r.Skip("the proxy stands before one broker: KAFKA_NODES=1")
		}
		for name, late := range lateKinds {
			r.Run(name, func(t *testing.T) {
				t.Parallel() // it waits for timeouts
				at, step := 0, 1
				if r.real && os.Getenv("STATEMILL_SOAK") == "" {
					step = 7 // each costs more than a second
				}
				for ; newRig(t, r.addr, r.real).arrivesLate(late, at); at += step {
				}
				require.Greater(t, at, 5, "it was never late")
				t.Log("late at up to", at, "moments")
			})
		}
	})
}

// arrivesLate says whether there was such a moment.
func (r *rig) arrivesLate(late lateRequest, behind int) bool {
	p := newProxy(r.T, r.addr)
	defer p.close()
	late.behind = behind
	arrived := p.holdBack(late)
	topic, root := r.topic(1), strconv.FormatInt(time.Now().UnixNano(), 36)
	u := kafka.NewSink("late", kafka.Brokers(r.addr), r.through(p), kafka.RequestTimeout(r.patient()), kafka.ProduceBatchBytes(1<<10))
	door := u.Topic(topic)
	defer u.Close()
	fence := func() (have uint64) {
		require.NoError(r, u.Fence(r.ctx, sink.Fence{Root: root, Run: "r", Term: 1}))
		m, _, err := u.Memory(r.ctx)
		if errors.Is(err, sink.ErrFenced) {
			require.NoError(r, u.Fence(r.ctx, sink.Fence{Root: root, Run: "r", Term: 1}))
			m, _, err = u.Memory(r.ctx)
		}
		require.NoError(r, err)
		return m.Epoch
	}
	// attempt is what the engine does with an epoch.
	attempt := func(epoch uint64, commit bool) error {
		tx, err := u.Begin(r.ctx, epoch)
		if err != nil {
			return err
		}
		err = tx.Write(r.ctx, sink.Part{Output: "o", Target: topic, Of: 1}, func(yield func([]byte) error) error {
			for _, x := range "abc" { // two of them fill batches
				row, err := door.Encode(nil, kafka.Message{Value: fmt.Appendf(nil, "%d%c%s", epoch, x, strings.Repeat(".", 900))})
				if err == nil {
					err = yield(row)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || !commit {
			return errors.Join(err, tx.Abort(r.ctx))
		}
		return tx.Commit(r.ctx, sink.Memory{Epoch: epoch, Term: 1})
	}
	const epochs = 3
	have, aborted, tries := fence(), false, 0
	for have < epochs {
		tries++
		require.Less(r, tries, 20)
		commit := have != 1 || aborted
		err := attempt(have+1, commit)
		switch {
		case errors.Is(err, sink.ErrFenced):
			have = fence()
		case err != nil:
			require.NoError(r, err, "behind %d", behind)
		case commit:
			have++
		default:
			aborted = true
		}
	}
	require.EqualValues(r, epochs, fence(), "behind %d", behind)
	require.NoError(r, r.settle(r.ctx))
	var got, want []string
	for _, x := range r.otherRead(topic) {
		got = append(got, strings.TrimRight(string(x.Value), "."))
	}
	for epoch := 1; epoch <= epochs; epoch++ {
		for _, x := range "abc" {
			want = append(want, fmt.Sprintf("%d%c", epoch, x))
		}
	}
	require.Equal(r, want, got, "behind %d", behind)
	return arrived()
}
