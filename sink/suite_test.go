package sink_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/sinktest"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// readAll is what an outside reader sees of all roots.
func readAll(ctx context.Context, store vfs.Store, name string) (list []string, err error) {
	roots, err := sink.FileRoots(ctx, store, name)
	if err != nil {
		return nil, err
	}
	for _, root := range roots {
		r, err := sink.OpenFiles(ctx, store, name, root)
		if err != nil {
			return nil, err
		}
		for row, err := range r.Rows(ctx) {
			if err != nil {
				return nil, err
			}
			list = append(list, string(row.Data))
		}
	}
	return list, nil
}

func objectsCase(*testing.T) sinktest.Case {
	store := vfs.NewObjects()
	return sinktest.Case{
		Open: func(in vfs.Injector) sink.Unit {
			if in == nil {
				return sink.NewFiles("out", store)
			}
			return sink.NewFiles("out", vfs.WithStoreFaults(store, in))
		},
		Target:     "lines",
		Read:       func(ctx context.Context) ([]string, error) { return readAll(ctx, store, "out") },
		KnowsTerms: true,
	}
}

// diskCase is a folder on a machine that crashes and loses what was not synced.
func diskCase(t *testing.T) sinktest.Case {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("w"))
	require.NoError(t, mem.SyncDir("."))
	clients := 0
	dir := func(fsys vfs.FS) vfs.Store {
		clients++
		d, err := vfs.NewDir(fsys, "w/ckpt", "c"+string(rune('a'+clients%26)))
		require.NoError(t, err)
		return d
	}
	return sinktest.Case{
		Open: func(in vfs.Injector) sink.Unit {
			if in == nil {
				return sink.NewFiles("out", dir(mem))
			}
			return sink.NewFiles("out", dir(vfs.WithFaults(mem, in)))
		},
		Target: "records",
		Read: func(ctx context.Context) ([]string, error) {
			list, err := readAll(ctx, dir(mem), "out")
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return list, err
		},
		KnowsTerms: true,
		Crash:      func() { mem = mem.CrashClone(nil, 0) },
	}
}

func TestFilesSuite(t *testing.T) {
	t.Run("objects", func(t *testing.T) { sinktest.Run(t, objectsCase) })
	t.Run("disk", func(t *testing.T) { sinktest.Run(t, diskCase) })
}
