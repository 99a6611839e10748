package kafkatest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// counted are records for the counted topic, the step's partition and others.
func (h *history) counted(s step) (records []*kgo.Record) {
	random := rand.New(rand.NewPCG(s.data, 1))
	for range s.records {
		p := s.partition
		if s.kind != "lose" && random.IntN(2) == 0 {
			p = random.IntN(h.partitions)
		}
		records = append(records, &kgo.Record{Topic: h.in, Partition: int32(p), Key: fmt.Appendf(nil, "key%d", random.IntN(historyKeys)), Value: h.number()})
	}
	return records
}

// rows are records for the table, some of them tombstones. Each has a number.
func (h *history) rows(s step) (records []*kgo.Record) {
	random := rand.New(rand.NewPCG(s.data, 2))
	for range 1 + s.records/4 {
		x := &kgo.Record{Topic: h.table, Key: fmt.Appendf(nil, "row%d", random.IntN(historyKeys)), Value: h.number()}
		x.Headers = []kgo.RecordHeader{{Key: "n", Value: x.Value}}
		if random.IntN(5) == 0 {
			x.Value = nil
		}
		records = append(records, x)
	}
	return records
}

// number makes a value that no other record has.
func (h *history) number() []byte {
	h.numbers++
	return strconv.AppendInt(nil, int64(h.numbers), 10)
}

// write writes records and puts them into the model.
func (h *history) write(cl *kgo.Client, records []*kgo.Record, f fate) (all []*written) {
	require.NoError(h, cl.ProduceSync(h.ctx, records...).FirstErr())
	for _, x := range records {
		w := &written{x, f}
		all = append(all, w)
		if x.Topic == h.in {
			h.model.counted = append(h.model.counted, w)
		} else {
			h.model.table = append(h.model.table, w)
		}
	}
	return all
}

// transactional is the id of a producer.
func (h *history) transactional(producer int) kgo.Opt {
	return kgo.TransactionalID(fmt.Sprintf("%s-producer%d", h.in, producer))
}

// begin writes to both topics in a transaction and leaves it open.
func (h *history) begin(s step) {
	cl := h.client(h.transactional(s.producer), kgo.TransactionTimeout(5*time.Minute))
	require.NoError(h, cl.BeginTransaction())
	records := h.counted(s)
	// In the process, no client sees some committed rows of a compacted topic again.
	if h.real && s.data%3 == 0 {
		records = append(records, h.rows(s)...)
	}
	h.open[s.producer] = &transaction{cl, h.write(cl, records, undecided)}
}

// end ends a transaction, or lets its producer die, whose successor ends it. Where a broker that dies leaves open what became of it, the
// topic tells.
func (h *history) end(s step) {
	x := h.open[s.producer]
	delete(h.open, s.producer)
	f := aborted
	if s.yes {
		f = committed
	}
	if s.dies() {
		h.succeed(x, s.producer)
	} else if err := x.client.EndTransaction(h.ctx, kgo.TransactionEndTry(s.yes)); err != nil {
		h.Logf("a transaction ends with %v", err)
		require.NoError(h, x.client.EndTransaction(h.ctx, kgo.TryAbort))
		first := x.written[0].record
		h.until("the end of a transaction", func() bool {
			stable, err := h.tryOffsets(h.ctx, first.Topic, -1)
			return err == nil && stable[first.Partition] > first.Offset
		})
		if f = aborted; h.isCommitted(first) {
			f = committed
		}
	}
	x.client.Close()
	for _, w := range x.written {
		w.fate = f
	}
	h.happened(s.ends())
}

// ends is how a transaction ends, if brokers live.
func (s step) ends() string {
	switch {
	case s.dies():
		return "die"
	case s.yes:
		return "commit"
	}
	return "abort"
}

// dies says that the producer does not end its transaction.
func (s step) dies() bool { return !s.yes && s.data%2 == 0 }

// succeed takes over from a producer that has died: what it left open is aborted.
func (h *history) succeed(x *transaction, producer int) {
	x.client.Close()
	cl := h.client(h.transactional(producer))
	_, _, err := cl.ProducerID(h.ctx)
	require.NoError(h, err)
	cl.Close()
}

// compacted is how many rows of the table compaction has taken.
func (h *history) compacted() int {
	n := 0
	for _, w := range h.model.table {
		if w.fate == committed {
			n++
		}
	}
	return n - len(h.otherRead(h.table))
}

func (h *history) isCommitted(x *kgo.Record) bool {
	for _, y := range h.otherRead(x.Topic) {
		if y.Partition == x.Partition && y.Offset == x.Offset {
			return true
		}
	}
	return false
}

// grow gives a topic more partitions, and waits until every broker knows them.
func (r *rig) grow(topic string, partitions int) {
	q := kmsg.NewPtrCreatePartitionsRequest()
	q.TimeoutMillis = 30_000
	q.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: topic, Count: int32(partitions)}}
	a, err := q.RequestWith(r.ctx, r.admin)
	require.NoError(r, err)
	require.NoError(r, kerr.ErrorForCode(a.Topics[0].ErrorCode))
	m := kmsg.NewPtrMetadataRequest()
	m.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	brokers, err := m.RequestWith(r.ctx, r.admin)
	require.NoError(r, err)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, b := range brokers.Brokers {
		for {
			answer, err := r.admin.Broker(int(b.NodeID)).RetriableRequest(r.ctx, m)
			require.NoError(r, err)
			t := answer.(*kmsg.MetadataResponse).Topics[0]
			led := 0
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 && p.Leader >= 0 {
					led++
				}
			}
			if led == partitions {
				break
			}
			select {
			case <-tick.C:
			case <-r.ctx.Done():
				require.NoError(r, errors.New("a broker does not learn of new partitions"))
			}
		}
	}
}
