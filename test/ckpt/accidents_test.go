package ckpt

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

// every is the number of versions between two snapshots.
const every = 4

// made makes the checkpoint of the first ten batches: with snapshots of versions 4 and
// 8, and nothing below the older of them.
func made(t *testing.T, c *recorded) *root {
	r := &root{t: t, disk: vfs.NewMem()}
	kit := start(t, r, c, 0, 2, dstream.WithCheckpointStore(r.store("first"), dstream.SnapshotEvery(every), dstream.SnapshotBySize(false)))
	for i := 1; i <= before; i++ {
		kit.Tick(1)
		switch i {
		case 4, 8:
			r.await("snapshot", func() bool { return number(r.newest("snapshot")) == i })
		case before:
			r.await("clean-up", func() bool { return len(r.match("state/1/*/[1-3].*"))+len(r.match("offsets/[1-3]")) == 0 })
		}
	}
	require.NoError(t, kit.Err())
	require.Equal(t, c.wanted()[:before], kit.outputs())
	require.NoError(t, kit.Stop())
	require.Len(t, r.some("commits/*"), before-every+1, "commits from the oldest kept version on")
	return r
}

// newest is the older of the newest files of both partitions.
func (r *root) newest(kind string) (name string) {
	for part := range 2 {
		all := r.match("state/1/" + string(rune('0'+part)) + "/*." + kind)
		if len(all) == 0 {
			return ""
		}
		if last := all[len(all)-1]; name == "" || number(last) < number(name) {
			name = last
		}
	}
	return name
}

func TestAccidents(t *testing.T) {
	c := plain(t)
	base := made(t, &c)
	content := base.content()
	for _, a := range accidents {
		t.Run(a.String(), func(t *testing.T) {
			r := base.clone(t)
			a.do(r)
			kit, err := goOn(t, r, &c, &a)
			if a.fails == nil {
				require.NoError(t, err)
				a.exact(t, kit, &c)
				return
			}
			require.ErrorIs(t, err, a.fails)
			for _, name := range a.names {
				assert.ErrorContains(t, err, name)
			}
			assert.Empty(t, kit.outputs(), "outputs of a start that was refused")
			kit.Stop()

			// It has damaged nothing.
			r.putBack(content)
			mended := a
			mended.partitions, mended.again, mended.anew = 0, 0, false
			kit, err = goOn(t, r, &c, &mended)
			require.NoError(t, err, "with the files put back")
			mended.exact(t, kit, &c)
		})
	}
}

// goOn starts the job again and gives it the other batches.
func goOn(t *testing.T, r *root, c *recorded, a *accident) (*run, error) {
	partitions := max(2, a.partitions)
	opts := append([]dstream.ContextOption{dstream.WithCheckpointStore(r.store("second"),
		dstream.SnapshotEvery(every), dstream.Compress(a.compress))}, a.opts...)
	kit := start(t, r, c, before, partitions, opts...)
	if err := kit.Start(); err != nil {
		return kit, err
	}
	ticks := len(c.Batches) - before
	if a.anew {
		ticks++ // its batch is read by the next one
	}
	for range ticks {
		kit.Tick(1)
		if err := kit.Err(); err != nil {
			return kit, err
		}
	}
	return kit, nil
}

// exact holds the outputs and the state against the recorded run without an accident.
func (a *accident) exact(t *testing.T, kit *run, c *recorded) {
	from := before
	if a.again > 0 {
		from = a.again - 1
	}
	assert.Equal(t, c.wanted()[from:], kit.outputs())
	assert.Equal(t, c.totals(), milltest.State[string, int64](kit.Kit, "counts"))
	all := kit.Progress()
	assert.Equal(t, a.repaired, all[len(all)-1].Checkpoint.Repaired > 0, "%v", kit.notices)
	if a.repaired {
		assert.True(t, slices.ContainsFunc(kit.notices, func(n dstream.Notice) bool { return n.Kind == checkpoint.NoticeSnapshot }), "%v", kit.notices)
	}
	assert.NoError(t, kit.Stop())
}
