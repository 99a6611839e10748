package batchfiles_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/statemill/statemill/batchfiles"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const folder = "words-5000.txt"

var bg = context.Background()

// disk is a file system in which /out is there for good.
func disk(t testing.TB) *vfs.Mem {
	m := vfs.NewMem()
	require.NoError(t, m.MkdirAll("/out"))
	require.NoError(t, m.SyncDir("/"))
	return m
}

// writer opens the store of one run.
func writer(t testing.TB, fsys vfs.FS, tag string) vfs.Store {
	s, err := vfs.NewDir(fsys, "/out", tag)
	require.NoError(t, err)
	return s
}

// rows makes a dataset of n rows over p partitions, on one worker so that calls come in
// one order.
func rows(n, p int) *rdd.RDD[int] {
	all := make([]int, n)
	for i := range all {
		all[i] = 100 * i
	}
	return rdd.Parallelize(all, p).WithExecutor(rdd.Local(1, nil))
}

// files gives the bytes of all files below a folder, names of puts under way too. But for
// that of _SUCCESS: a loss of power may bring it back, and no reader looks for it.
func files(t testing.TB, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	list, err := fsys.ReadDir(dir)
	require.NoError(t, err)
	for _, i := range list {
		name := filepath.Join(dir, i.Name)
		if i.Dir {
			for k, v := range files(t, fsys, name) {
				out[k] = v
			}
			continue
		}
		if strings.HasPrefix(i.Name, "_SUCCESS.tmp.") {
			continue
		}
		b, err := vfs.ReadFile(fsys, name)
		require.NoError(t, err)
		out[name] = string(b)
	}
	return out
}

func saveText(store vfs.Store, r *rdd.RDD[int]) error {
	return batchfiles.SaveText(bg, store, folder, r, nil)
}

func readText(t testing.TB, store vfs.Store) []string {
	t.Helper()
	r, err := batchfiles.Lines(bg, store, folder)
	require.NoError(t, err)
	got, err := rdd.Collect(bg, r)
	require.NoError(t, err)
	return got
}

func texts(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(100*i))
	}
	return out
}
