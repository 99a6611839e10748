package crash

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// sinkTotals reads all rows of the sink and gives the last count of every word. A
// word's rows must be 1, 2, 3 …, in this order: one that is missing, doubled or of an
// abandoned attempt breaks it.
func (r *rig) sinkTotals() map[string]int64 {
	store, err := vfs.NewDir(vfs.Disk(), r.out, "reader")
	require.NoError(r, err)
	files, err := sink.OpenFiles(r.Context(), store, "counts", "")
	require.NoError(r, err, "%s", filepath.Join(r.out, "counts"))
	totals := map[string]int64{}
	for row, err := range files.Rows(r.Context()) {
		require.NoError(r, err)
		word, text, _ := strings.Cut(string(row.Data), "\t")
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(r, err, "row %q", row.Data)
		if n != totals[word]+1 {
			require.Failf(r, "a row is missing or doubled", "epoch %d: %q has count %d after %d", row.Epoch, word, n, totals[word])
		}
		totals[word] = n
	}
	return totals
}
