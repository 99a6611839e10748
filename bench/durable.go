package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/vfs"
)

// traffic counts what goes to and from the files of a checkpoint.
type traffic struct {
	deltas, snapshots, documents atomic.Int64 // bytes written
	opens, reads, lists, syncs   atomic.Int64 // calls; reads are those of state and documents
	owners                       atomic.Int64 // looks at owner files, which are opened and read to the end
}

// Before is told every file call.
func (t *traffic) Before(c vfs.Call) vfs.Fault {
	switch c.Kind {
	case vfs.KindWrite:
		switch {
		case strings.Contains(c.Path, ".delta"):
			t.deltas.Add(int64(c.Bytes))
		case strings.Contains(c.Path, ".snapshot"):
			t.snapshots.Add(int64(c.Bytes))
		default:
			t.documents.Add(int64(c.Bytes))
		}
	case vfs.KindOpen:
		t.opens.Add(1)
		if isOwner(c.Path) {
			t.owners.Add(1)
		}
	case vfs.KindRead:
		if !isOwner(c.Path) {
			t.reads.Add(1)
		}
	case vfs.KindReadDir:
		t.lists.Add(1)
	case vfs.KindSync, vfs.KindSyncDir:
		t.syncs.Add(1)
	}
	return vfs.Fault{}
}

func isOwner(path string) bool { return filepath.Base(filepath.Dir(path)) == "owner" }

// commits is what commits have written: everything but snapshots.
func (t *traffic) commits() int64 { return t.deltas.Load() + t.documents.Load() }

// A place is a folder on the disk for the checkpoint of one benchmark; the disk is that of TMPDIR.
type place struct {
	dir  string
	runs int
}

func newPlace() (*place, error) {
	dir, err := os.MkdirTemp("", "statemill-bench-*")
	return &place{dir: dir}, err
}

func (p *place) remove() error { return os.RemoveAll(p.dir) }

// options keep a run's state in the place.
func (p *place) options(t *traffic, opts ...dstream.CheckpointOption) (dstream.ContextOption, error) {
	p.runs++
	store, err := vfs.NewDir(vfs.WithFaults(vfs.Disk(), t), p.dir+"/ckpt", fmt.Sprint("run", p.runs))
	if err != nil {
		return nil, err
	}
	return dstream.WithCheckpointStore(store, opts...), nil
}

// size adds up the files whose name ends in one way.
func (p *place) size(end string) (bytes int64, err error) {
	store, err := vfs.NewDir(vfs.Disk(), p.dir+"/ckpt", "size")
	if err != nil {
		return 0, err
	}
	all, err := store.List(context.Background(), "")
	for _, o := range all {
		if strings.HasSuffix(o.Name, end) {
			bytes += o.Size
		}
	}
	return bytes, err
}

// ready is what a run took from its start to readiness.
type ready struct{ wall, cpu time.Duration }

func (r ready) String() string {
	return fmt.Sprintf("%.0f ms (%.0f ms)", float64(r.wall)/1e6, float64(r.cpu)/1e6)
}

// open starts the job on the place, where an earlier run may have left off at a batch time.
func (p *place) open(parallelism, partitions int, at time.Time, t *traffic, more []dstream.ContextOption, opts ...dstream.CheckpointOption) (*engine, ready, error) {
	durable, err := p.options(t, opts...)
	if err != nil {
		return nil, ready{}, err
	}
	e := buildEngine(parallelism, partitions, append(more, durable)...)
	if !at.IsZero() {
		e.now = at
		e.clock.Set(at)
	}
	from, cpu := time.Now(), cpuTime()
	if err := e.ssc.Start(); err != nil {
		return nil, ready{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := e.hooks.WaitStarted(ctx); err != nil {
		return nil, ready{}, errors.Join(err, e.close())
	}
	return e, ready{time.Since(from), cpuTime() - cpu}, nil
}

// awaitSnapshots waits until each partition has a snapshot of a version or a later one.
func (p *place) awaitSnapshots(partitions int, version uint64) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 60_000 {
		ok := true
		for part := range partitions {
			n, err := p.newestSnapshot(part)
			if err != nil {
				return err
			}
			ok = ok && n >= version
		}
		if ok {
			return nil
		}
		<-tick.C
	}
	return fmt.Errorf("no snapshot of version %d within a minute", version)
}

func (p *place) newestSnapshot(part int) (newest uint64, err error) {
	entries, err := os.ReadDir(fmt.Sprintf("%s/ckpt/state/1/%d", p.dir, part))
	for _, e := range entries {
		var version, term uint64
		if n, _ := fmt.Sscanf(e.Name(), "%d.%d.snapshot", &version, &term); n == 2 && strings.HasSuffix(e.Name(), ".snapshot") {
			newest = max(newest, version)
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	return newest, err
}
