package milltool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

// TestCompressionFlag: what rescale and repair write is compressed as it was asked for, and holds the same.
func TestCompressionFlag(t *testing.T) {
	bytesOf := func(s *vfs.Objects, part string) (n int) {
		for name, content := range objects(t, s) {
			if strings.HasPrefix(name, part) {
				n += len(content)
			}
		}
		return n
	}
	root := vfs.NewObjects()
	m := newMaker(t, root)
	m.start()
	counts := addOp[string, int64](m, "counts", 2, false)
	m.metadata()
	for k := range 2000 {
		counts.put(fmt.Sprint("a key that is like the others ", k), int64(k))
	}
	m.commit(checkpoint.KindBatch)
	want, _, _ := run(t, root, "dump", "ckpt", "counts")
	size := map[string]int{}
	for _, c := range []string{"", "none", "s2", "zstd"} {
		args := []string{"rescale", "-takeover", "ckpt", "counts=1"}
		if c != "" {
			args = append(args, "-compression", c)
		}
		s := root.Clone()
		_, errs, code := run(t, s, args...)
		require.Equal(t, ExitOK, code, errs)
		got, _, _ := run(t, s, "dump", "ckpt", "counts")
		require.Equal(t, withoutPartitions(want), withoutPartitions(got))
		size[c] = bytesOf(s, "state/1/r1/")
	}
	require.Equal(t, size[""], size["none"])
	require.Less(t, size["s2"], size["none"])
	require.Less(t, size["zstd"], size["s2"])
	_, errs, code := run(t, root, "rescale", "ckpt", "counts=1", "-compression", "lz4")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, `compression "lz4" is unknown; use none, s2 or zstd`)

	// A repaired snapshot.
	for part := range 2 {
		counts.snapshot(m, part)
	}
	good := map[string]string{}
	for name := range objects(t, root) {
		if strings.HasSuffix(name, ".snapshot") {
			good[name] = name
		}
	}
	for _, c := range []string{"none", "zstd"} {
		s := root
		for name := range good {
			s = with(t, s, name, []byte("damaged"))
		}
		_, errs, code := run(t, s, "repair", "-write", "-takeover", "-compression", c, "ckpt")
		require.Equal(t, ExitOK, code, errs)
		got, _, _ := run(t, s, "dump", "ckpt", "counts")
		require.Equal(t, want, got)
		size[c] = bytesOf(s, "state/")
	}
	require.Less(t, size["zstd"], size["none"])
}
