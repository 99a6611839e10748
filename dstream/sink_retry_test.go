package dstream_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

var errAway = errors.New("the broker is away")

// awayUnit is a sink of which the commits fail, so often; before each try it asks.
type awayUnit struct {
	*sink.Files
	fails  int
	before func()
}

func (u *awayUnit) Begin(ctx context.Context, epoch uint64) (sink.Tx, error) {
	tx, err := u.Files.Begin(ctx, epoch)
	return &awayTx{tx, u}, err
}

type awayTx struct {
	sink.Tx
	u *awayUnit
}

func (x *awayTx) Commit(ctx context.Context, m sink.Memory) error {
	x.u.before()
	if x.u.fails > 0 {
		x.u.fails--
		return errAway
	}
	return x.Tx.Commit(ctx, m)
}

// TestRetriesOfASinkAreToldInMidBatch: why a batch hangs is known to listeners and to
// Healthy while its sink fails, and not when that is over. // report 38
func TestRetriesOfASinkAreToldInMidBatch(t *testing.T) {
	var mu sync.Mutex
	var told, tries []string
	var unwell []error
	u := &awayUnit{Files: sink.NewFiles("files", vfs.NewObjects()), fails: 2}
	door := sink.Lines(u.Files, func(dst []byte, w string) ([]byte, error) { return append(dst, w...), nil })
	r := newRig(t, time.Second, func(c ssc) error {
		words := dstream.From(c, "in", newScript(1, []string{"a"}, []string{"b"}))
		dstream.Output(words, "out", sink.Sink[string]{Unit: u, Target: door.Target, Encode: door.Encode})
		return nil
	}, dstream.WithCheckpointStore(vfs.NewObjects()), dstream.WithListener(dstream.Listener{Notice: func(n dstream.Notice) {
		mu.Lock()
		defer mu.Unlock()
		if n.Kind == checkpoint.NoticeRetry {
			told = append(told, n.Text+": "+n.Err.Error())
		}
	}}))
	u.before = func() {
		err := r.ssc.Healthy()
		mu.Lock()
		defer mu.Unlock()
		unwell = append(unwell, err)
		tries = append(tries, "")
		if len(told) > 0 {
			tries[len(tries)-1] = told[len(told)-1]
		}
	}
	r.start().tick(1)
	require.Len(t, tries, 3)
	require.Empty(t, tries[0])
	require.Equal(t, "commit sink files failed and is tried again in 50ms: sink files: commit epoch 1: the broker is away", tries[1], "before the second try")
	require.Equal(t, "commit sink files failed and is tried again in 100ms: sink files: commit epoch 1: the broker is away", tries[2])
	require.NoError(t, unwell[0])
	for _, err := range unwell[1:] {
		require.ErrorIs(t, err, dstream.ErrFailing)
		require.ErrorContains(t, err, "the broker is away")
	}
	require.NoError(t, r.ssc.Healthy(), "it is over")
}
