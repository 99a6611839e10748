package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/checkpoint/storetest"
	"github.com/statemill/statemill/vfs"
)

// onDisk is a folder with locks; each process that opens it has a tag of its own.
type onDisk struct {
	mem  *vfs.Mem
	runs int
}

func (d *onDisk) Open(o storetest.Options) (storetest.Stores, error) {
	d.runs++
	fsys := vfs.FS(d.mem)
	if o.Faults != nil {
		fsys = vfs.WithFaults(fsys, o.Faults)
	}
	tag := fmt.Sprintf("run%d", d.runs)
	s, err := vfs.NewDir(fsys, "/root", tag)
	if err != nil {
		return nil, err
	}
	return openProvider(s, tag, o)
}

func openProvider(s vfs.Store, tag string, o storetest.Options) (storetest.Stores, error) {
	p, err := store.OpenProvider(context.Background(), store.ProviderConfig[storetest.Key, int64]{
		Store: s, Tag: tag, Cache: o.Cache, Policy: store.EveryVersions(o.Every), RetryLimit: -1,
	})
	if err != nil {
		return nil, err // not a typed nil
	}
	return p, nil
}

func (d *onDisk) Crash(seed uint64, percent int) storetest.Medium {
	return &onDisk{mem: d.mem.CrashClone(rand.New(rand.NewPCG(seed, 1)), percent), runs: d.runs + 100}
}

func (d *onDisk) Files() vfs.Store {
	s, err := vfs.NewDir(d.mem, "/root", "test")
	if err != nil {
		panic(err)
	}
	return s
}

// inObjects is an object store, which has no locks.
type inObjects struct{ o *vfs.Objects }

func (m *inObjects) Open(o storetest.Options) (storetest.Stores, error) {
	s := vfs.Store(m.o)
	if o.Faults != nil {
		s = vfs.WithStoreFaults(s, o.Faults)
	}
	return openProvider(s, "", o)
}

func (m *inObjects) Crash(uint64, int) storetest.Medium { return &inObjects{m.o.Clone()} }

func (m *inObjects) Files() vfs.Store { return m.o }

func TestProvider(t *testing.T) {
	t.Run("disk", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) storetest.Medium { return &onDisk{mem: vfs.NewMem()} })
	})
	t.Run("objects", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) storetest.Medium { return &inObjects{vfs.NewObjects()} })
	})
}

var _ = require.New
