package ckpt

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

// A layout is which files there are after fifteen batches.
type layout struct {
	name, what, spark, ours string
	every                   int   // versions between two snapshots
	snapshots               []int // that are there at the end
	floor                   int   // the oldest version that is kept
}

var layouts = []layout{
	{name: "ckpt_layout_hdfs_a", every: 4, snapshots: []int{8, 12}, floor: 8,
		what:  "a snapshot every 4 versions",
		spark: "a delta a batch, snapshots 4, 8, 12 of which the newest needed stays",
		ours:  "a delta for each changed partition, snapshots 8 and 12, nothing below 8"},
	{name: "ckpt_layout_hdfs_d1_a", every: 2, snapshots: []int{12, 14}, floor: 12,
		what:  "a snapshot every 2 versions",
		spark: "a delta a batch, a snapshot every 2",
		ours:  "snapshots 12 and 14, nothing below 12"},
	{name: "ckpt_layout_hdfs_nomaint_a", every: 1000, floor: 1,
		what:  "no snapshot is due",
		spark: "deltas only, none is deleted",
		ours:  "deltas only, none is deleted"},
	{name: "ckpt_layout_rocksdb_a", every: 1, snapshots: []int{14, 15}, floor: 13,
		what:  "a snapshot of every version",
		spark: "a list of SST files for every batch",
		ours:  "the two newest snapshots, and what leads to versions from 13 on"},
	{name: "ckpt_layout_rocksdb_changelog_a", every: 3, snapshots: []int{12, 15}, floor: 9,
		what:  "a snapshot every 3 versions",
		spark: "a change log a batch, a list of SST files every 3",
		ours:  "snapshots 12 and 15, nothing below 9"},
}

// inputOf gives fifteen batches.
func inputOf(t *testing.T) recorded {
	c := plain(t)
	for i := len(c.Batches); i < 15; i++ {
		c.Batches = append(c.Batches, []string{"w1", "w3", "w4", fmt.Sprint("only", i+1)})
	}
	return c
}

func TestLayouts(t *testing.T) {
	c := inputOf(t)
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			r := &root{t: t, disk: vfs.NewMem()}
			kit := start(t, r, &c, 0, 2, dstream.WithCheckpointStore(r.store("first"), dstream.SnapshotEvery(l.every), dstream.SnapshotBySize(false)))
			for i := 1; i <= len(c.Batches); i++ {
				kit.Tick(1)
				if i%l.every == 0 {
					r.await("snapshot", func() bool { return number(r.newest("snapshot")) == i })
				}
			}
			r.await("clean-up", func() bool { return number(r.some("commits/*")[0]) == l.floor })
			require.NoError(t, kit.Err())
			assert.Equal(t, c.wanted(), kit.outputs()[:len(c.wanted())])
			assert.Equal(t, c.totals(), milltest.State[string, int64](kit.Kit, "counts"))
			require.NoError(t, kit.Stop())

			for part := range 2 {
				var snapshots []int
				for _, name := range r.match(fmt.Sprintf("state/1/%d/*.snapshot", part)) {
					snapshots = append(snapshots, number(name))
				}
				for _, name := range r.match(fmt.Sprintf("state/1/%d/*", part)) {
					assert.GreaterOrEqual(t, number(name), l.floor, name)
					assert.Contains(t, []string{".delta", ".snapshot"}, filepath.Ext(name))
				}
				// Snapshots at or above F that were superseded stay until F passes them.
				for _, n := range l.snapshots {
					assert.Contains(t, snapshots, n)
				}
			}
			for n := l.floor; n <= len(c.Batches); n++ {
				assert.Contains(t, r.files(), fmt.Sprintf("commits/%d", n))
				assert.Contains(t, r.files(), fmt.Sprintf("offsets/%d", n))
			}
		})
	}
}
