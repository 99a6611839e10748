package ckpt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/dstream"
)

// An accident is what is done to the files of a checkpoint, and what comes of it.
type accident struct {
	name string // of the recorded case, without what is common to all
	what string // in words, as the table has it
	do   func(r *root)
	// The next start: its partitions (0: two) and options.
	partitions int
	compress   dstream.Compression
	opts       []dstream.ContextOption

	// fails, if not nil, is the class of the error with which the start is
	// refused, and names what it names. Otherwise the job goes on exactly, from the
	// batch after the tenth or, with again, from that number on.
	fails error
	names []string
	again int
	anew  bool // that epoch is planned anew
	// repaired says that a notice tells of a bad snapshot.
	repaired bool
}

func garbage(r *root, names ...string) {
	r.change(func([]byte) []byte { return []byte("garbage") }, names...)
}

func cutTo(n int) func([]byte) []byte {
	return func(b []byte) []byte { return b[:min(n, len(b))] }
}

func flip(b []byte) []byte { b[len(b)/2] ^= 1; return b }

var accidents = []accident{
	{name: "none", what: "nothing", do: func(*root) {}},

	{name: "commit_garbage", what: "`commits/10` holds garbage",
		do: func(r *root) { garbage(r, "commits/10") }, fails: checkpoint.ErrCorrupt, names: []string{"commits/10"}},
	{name: "commit_last_deleted", what: "`commits/10` deleted",
		do: func(r *root) { r.remove("commits/10") }, again: 10},
	{name: "commit_two_deleted", what: "`commits/9` and `commits/10` deleted",
		do: func(r *root) { r.remove("commits/9", "commits/10") }, fails: checkpoint.ErrGap, names: []string{"commits/"}},
	{name: "commits_all_deleted", what: "all of `commits/` deleted",
		do: func(r *root) { r.remove(r.some("commits/*")...) }, fails: checkpoint.ErrGap, names: []string{"commits/1", "offsets/10"}},

	{name: "delta_cut_tail", what: "the newest deltas lack their last 8 bytes",
		do: func(r *root) {
			r.change(func(b []byte) []byte { return b[:len(b)-8] }, r.last("delta")...)
		}, fails: store.ErrNotLoadable, names: []string{".delta", "partition", "version 10"}},
	{name: "delta_empty", what: "the newest deltas are empty",
		do: func(r *root) { r.change(cutTo(0), r.last("delta")...) }, fails: store.ErrNotLoadable, names: []string{".delta"}},
	{name: "delta_truncated", what: "the newest deltas are cut to 10 bytes",
		do: func(r *root) { r.change(cutTo(10), r.last("delta")...) }, fails: store.ErrNotLoadable, names: []string{".delta"}},
	{name: "delta_missing_after_snapshot", what: "the newest deltas deleted",
		do: func(r *root) { r.remove(r.last("delta")...) }, fails: store.ErrNotLoadable, names: []string{".delta"}},
	{name: "delta_missing_old", what: "the deltas of the newest snapshots' version deleted",
		do: func(r *root) { r.remove(r.some("state/1/*/8.*.delta")...) }},

	{name: "metadata_deleted", what: "`metadata/` deleted",
		do: func(r *root) { r.remove(r.some("metadata/*")...) }, fails: checkpoint.ErrVanished, names: []string{"metadata/1"}},
	{name: "metadata_garbage", what: "`metadata/1` holds garbage",
		do: func(r *root) { garbage(r, "metadata/1") }, fails: checkpoint.ErrCorrupt, names: []string{"metadata/1"}},

	{name: "offset_commit_last_deleted", what: "`offsets/10` and `commits/10` deleted",
		do: func(r *root) { r.remove("offsets/10", "commits/10") }, again: 10, anew: true},
	{name: "offset_empty", what: "`offsets/10` is empty",
		do: func(r *root) { r.change(cutTo(0), "offsets/10") }, fails: checkpoint.ErrCorrupt, names: []string{"offsets/10"}},
	{name: "offset_future_version", what: "`offsets/10` is of a newer format",
		do: func(r *root) { r.change(newer(r.t), "offsets/10") }, fails: checkpoint.ErrFormat, names: []string{"offsets/10", "format 99"}},
	{name: "offset_garbage", what: "`offsets/10` holds garbage",
		do: func(r *root) { garbage(r, "offsets/10") }, fails: checkpoint.ErrCorrupt, names: []string{"offsets/10"}},
	{name: "offset_last_deleted", what: "`offsets/10` deleted, `commits/10` kept",
		do: func(r *root) { r.remove("offsets/10") }, fails: checkpoint.ErrGap, names: []string{"offsets/10"}},
	{name: "offset_prev_deleted", what: "`offsets/9` deleted",
		do: func(r *root) { r.remove("offsets/9") }},
	{name: "offset_prev_deleted_rerun", what: "`offsets/9` and `commits/10` deleted",
		do: func(r *root) { r.remove("offsets/9", "commits/10") }, fails: checkpoint.ErrGap, names: []string{"offsets/9"}},
	{name: "offsets_all_deleted", what: "all of `offsets/` deleted, `commits/` kept",
		do: func(r *root) { r.remove(r.some("offsets/*")...) }, fails: checkpoint.ErrGap, names: []string{"offsets/10"}},

	{name: "partition_dir_missing", what: "`state/1/1` deleted",
		do: func(r *root) { r.remove(r.some("state/1/1/*")...) }, fails: store.ErrNotLoadable, names: []string{"partition 1", "version 10"}},
	{name: "state_deleted", what: "all of `state/` deleted",
		do: func(r *root) { r.remove(r.some("state/1/*/*")...) }, fails: store.ErrNotLoadable, names: []string{"partition ", "version 10"}},
	{name: "state_tmp_file", what: "stray temporary files in a state folder",
		do: func(r *root) {
			r.write("state/1/0/.99.delta.x.tmp", []byte("x"))
			r.write("state/1/0/99.7.delta.tmp.x", []byte("x"))
		}},

	{name: "partitions_4", what: "4 partitions given instead of 2", do: func(*root) {}, partitions: 4,
		fails: checkpoint.ErrRefused, names: []string{"2", "4", "WithRescale", "statemill rescale"}},
	{name: "partitions_4", what: "4 partitions given instead of 2, with `WithRescale`", do: func(*root) {}, partitions: 4,
		opts: []dstream.ContextOption{dstream.WithRescale()}},
	{name: "provider_rocksdb", what: "another compression of state files",
		do: func(*root) {}, compress: dstream.Zstd},

	{name: "snapshot_deleted", what: "the newest snapshots deleted",
		do: func(r *root) { r.remove(r.last("snapshot")...) }, repaired: true},
	{name: "snapshot_empty", what: "the newest snapshots are empty",
		do: func(r *root) { r.change(cutTo(0), r.last("snapshot")...) }, repaired: true},
	{name: "snapshot_flipped", what: "one bit in the middle of the newest snapshots changed",
		do: func(r *root) { r.change(flip, r.last("snapshot")...) }, repaired: true},
	{name: "snapshot_flipped_crc", what: "one bit of the newest snapshots changed (Spark: its `.crc` kept; here every file has its checksums inside)",
		do: func(r *root) { r.change(flip, r.last("snapshot")...) }, repaired: true},
	{name: "snapshot_truncated", what: "the newest snapshots are cut to 10 bytes",
		do: func(r *root) { r.change(cutTo(10), r.last("snapshot")...) }, repaired: true},
	{name: "snapshots_all_deleted", what: "all snapshots deleted",
		do: func(r *root) { r.remove(r.some("state/1/*/*.snapshot")...) }, fails: store.ErrNotLoadable, names: []string{"partition ", "version 10"}},
}

// newer makes a document one of a format that is not known, whole in itself.
func newer(t testing.TB) func([]byte) []byte {
	return func(b []byte) []byte {
		doc, err := checkpoint.DecodeDocument("offsets/10", b)
		require.NoError(t, err)
		doc.(*checkpoint.Plan).Format = 99
		b, err = checkpoint.EncodeDocument(doc)
		require.NoError(t, err)
		return b
	}
}

// statemill says in the table's words what Statemill does.
func (a *accident) statemill() string {
	switch {
	case a.fails != nil:
		return "refuses: " + errorName(a.fails)
	case a.anew:
		return "plans epoch 10 anew, exact"
	case a.again == before:
		return "runs epoch 10 again, exact"
	case a.again > 0:
		return fmt.Sprintf("runs epochs %d to 10 again, exact", a.again)
	case a.repaired:
		return "older snapshot and deltas, exact, with a notice"
	}
	return "goes on, exact"
}

var errorNames = map[error]string{
	checkpoint.ErrCorrupt: "`checkpoint.ErrCorrupt`", checkpoint.ErrFormat: "`checkpoint.ErrFormat`",
	checkpoint.ErrGap: "`checkpoint.ErrGap`", checkpoint.ErrVanished: "`checkpoint.ErrVanished`", checkpoint.ErrRefused: "`checkpoint.ErrRefused`", store.ErrNotLoadable: "`store.ErrNotLoadable`",
}

func errorName(err error) string { return errorNames[err] }

func (a *accident) String() string { return a.name + ": " + strings.ReplaceAll(a.what, "`", "") }
