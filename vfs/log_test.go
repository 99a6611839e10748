package vfs_test

import (
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew; read the diff")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// The order of the calls is the promise: write, sync, link, sync of the folder.
func TestOrderOfCalls(t *testing.T) {
	for _, root := range []string{"/root", "root", "/"} {
		m := vfs.NewMem()
		log := vfs.NewLog(root, vfs.KindAll)
		d := newDir(t, vfs.WithLog(m, log), root, "t1")
		script := log.String()
		for _, step := range []struct {
			name string
			do   func() error
		}{
			{"first put of a folder", func() error {
				return d.PutIfAbsent(context.Background(), "state/counts/7.delta", func(w io.Writer) error {
					_, err := w.Write([]byte("some"))
					require.NoError(t, err)
					_, err = w.Write([]byte("more"))
					return err
				})
			}},
			{"next put", func() error { return putString(d, "state/counts/8.delta", "x") }},
			{"taken", func() error { return putString(d, "state/counts/8.delta", "x") }},
			{"lock", func() error {
				held, err := d.Lock(context.Background(), "state/lock", "me")
				require.NoError(t, err)
				return held.Close()
			}},
			{"read", func() error { _, err := d.Get(context.Background(), "state/counts/8.delta"); return err }},
			{"delete", func() error { return d.Delete(context.Background(), "state/counts/8.delta") }},
			{"probe", func() error { _, err := d.Stat(context.Background(), "state/counts/8.delta"); return err }},
		} {
			log.Reset()
			_ = step.do() // what comes of it stands in the log
			script += "# " + step.name + "\n" + log.String()
		}
		if root == "/root" {
			golden(t, "calls.txt", script)
		} else {
			require.Contains(t, script, "link state/counts/8.delta.tmp.t1 -> state/counts/8.delta\nsyncdir state/counts\n")
		}
	}
}

func TestStoreLog(t *testing.T) {
	ctx := context.Background()
	log := vfs.NewLog("", vfs.KindAll)
	s := vfs.WithStoreLog(vfs.NewObjects(), log)
	require.Empty(t, log.String())
	require.NoError(t, putString(s, "commits/7", "x"))
	require.Error(t, putString(s, "commits/7", "x"))
	_, err := s.Lock(ctx, "lock", "me")
	require.Error(t, err)
	_, err = s.ReadAt(ctx, "commits/7", make([]byte, 9), 0)
	require.ErrorIs(t, err, io.EOF)
	_, err = s.List(ctx, "commits/")
	require.NoError(t, err)
	require.NoError(t, s.Delete(ctx, "commits/7"))
	require.Equal(t, `write commits/7
put commits/7
write commits/7
put commits/7 = file already exists
lock lock = unsupported operation
readat commits/7
list commits/
delete commits/7
`, log.String())
	require.Equal(t, 1, log.Count(vfs.KindList))
	require.Equal(t, 2, log.Count(vfs.KindPut))

	writes := vfs.NewLog("", vfs.KindWrites)
	_, err = vfs.WithStoreLog(s, writes).Get(ctx, "no")
	require.Error(t, err)
	require.Empty(t, writes.String())
	require.Equal(t, "create|lock|list", (vfs.KindCreate | vfs.KindLock | vfs.KindList).String())
}
