package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/vfs"
)

// LoadStats says how a version came to be in memory.
type LoadStats struct {
	// Partition is what was loaded, Version which version of it.
	Partition Partition
	Version   uint64
	// Files, Bytes and Keys are the files read, their length, and the keys of
	// the version.
	Files int
	Bytes int64
	Keys  int64
	// Head is the version of the snapshot or base that it began with, or the
	// one before the first of its line if it began with nothing.
	Head uint64
	// Deltas is the number of deltas after it.
	Deltas int
	// Bad are the snapshots that could not be used, newest first.
	Bad []Bad
	// Repaired counts what Bad holds, and 1 for a snapshot that must have been
	// lost: the counter snapshot_repaired. If it is not 0 the partition is to
	// get a new snapshot.
	Repaired int

	files []file // that were read whole and fit, by version
}

// Progress says how far a load is. Its numbers only grow.
type Progress struct {
	Operator  string
	Partition int
	// Files of FilesTotal are done, and Bytes of BytesTotal. A bad snapshot
	// makes the totals grow.
	Files, FilesTotal int
	Bytes, BytesTotal int64
	// Keys is the number of keys so far; after a bad snapshot it begins anew.
	Keys int64
	// Done says that the partition is loaded.
	Done bool
}

// progressBytes is how much is read between two events of a file.
const progressBytes = 8 << 20

// Load loads version n of a partition. open makes an empty, open map, and is
// called again if a snapshot turns out to be bad half-way; maps that are given
// up are aborted. The map that is returned is open and holds exactly the
// committed version; together with an error it is nil. progress, which may be
// nil, is called from this goroutine after each file and every 8 MiB.
//
// It uses the newest good snapshot or base at or below n and the deltas after
// it. Memory beyond the map is a few buffers. Errors: *LoadError, those of open
// and of reading commits.
func (o *Operator[K, S]) Load(ctx context.Context, part int, n uint64, open func() (*statemap.Map[K, S], error), progress func(Progress)) (*statemap.Map[K, S], LoadStats, error) {
	l := &loading[K, S]{o: o, ctx: ctx, part: part, n: n, progress: progress}
	l.at = Progress{Operator: o.c.Operator.Name, Partition: part}
	m, err := l.run(open)
	if err != nil {
		return nil, LoadStats{}, err
	}
	return m, l.stats, nil
}

// loading is one call of Load.
type loading[K comparable, S any] struct {
	o        *Operator[K, S]
	ctx      context.Context
	part     int
	n        uint64
	progress func(Progress)

	tools  *tools[K, S]
	stats  LoadStats
	at     Progress
	unseen int64 // bytes since the last event
}

func (l *loading[K, S]) run(open func() (*statemap.Map[K, S], error)) (*statemap.Map[K, S], error) {
	o := l.o
	l.tools = o.tools.Get()
	defer o.tools.Put(l.tools)
	if l.tools.loader == nil {
		l.tools.loader = statefile.NewLoader(o.c.Key, o.load)
	}
	l.stats = LoadStats{Partition: o.ID(l.part), Version: l.n}
	var names []string
	again := "" // a file whose reading failed once, though it may be good
	for {
		files, err := o.c.Root.Files(l.ctx, o.c.Operator.Number, l.part, l.n, names...)
		if err != nil {
			return nil, l.fail(nil, err)
		}
		m, err := open()
		if err != nil {
			return nil, err
		}
		at, err := l.files(m, files)
		if err == nil {
			l.finish(files, m)
			return m, nil
		}
		if sabotage.On("serve-partial") {
			return m, nil
		}
		// The map may hold a part of the version.
		_ = m.Abort()
		if start := files.Start; at == nil || at != start || start.Kind != statefile.Snapshot || l.ctx.Err() != nil || errors.Is(err, statefile.ErrDecode) {
			// Every file has the state that the program cannot read.
			return nil, l.fail(at, err)
		}
		if start := files.Start.Name; !checkpoint.Bad(err) && again != start {
			again = start
			continue
		}
		l.stats.Bad = append(l.stats.Bad, Bad{File: files.Start.Name, Version: files.Start.Version, Err: err})
		names = append(names, files.Start.Name)
	}
}

// files puts all files of a version into m. With an error it gives the file at
// fault, or nil if it is none of them.
func (l *loading[K, S]) files(m *statemap.Map[K, S], f *checkpoint.Files) (at *checkpoint.File, err error) {
	l.stats.Files, l.stats.Bytes, l.stats.files, l.stats.Deltas = 0, 0, nil, len(f.Deltas)
	l.at.FilesTotal = l.at.Files + len(f.Deltas)
	l.at.BytesTotal = l.at.Bytes
	for i := range f.Deltas {
		l.at.BytesTotal += f.Deltas[i].Size
	}
	if s := f.Start; s != nil {
		l.at.FilesTotal++
		l.at.BytesTotal += s.Size
		l.stats.Head = s.Version
		if err := l.file(m, f, s); err != nil {
			return s, err
		}
	} else {
		l.stats.Head = f.Operator.Since - min(1, f.Operator.Since)
	}
	for i := range f.Deltas {
		if err := l.file(m, f, &f.Deltas[i]); err != nil {
			return &f.Deltas[i], err
		}
	}
	if n := int64(m.Len()); n != f.Keys {
		return nil, fmt.Errorf("its files give %d keys, its commit counts %d", n, f.Keys)
	}
	return nil, nil
}

// file applies one file.
func (l *loading[K, S]) file(m *statemap.Map[K, S], f *checkpoint.Files, df *checkpoint.File) error {
	want := df.Want(f.Operator, l.part)
	if sabotage.On("chain-not-checked") {
		want.Chain, want.Checksum = statefile.Sum{}, statefile.Sum{}
	}
	obj := vfs.Object{Name: df.Name, Size: df.Size}
	done := l.at.Bytes
	sum, err := l.tools.loader.Load(reader(l.ctx, l.o.c.Store, obj, func(n int) { l.read(n, m) }), df.Name, *want, m)
	if err != nil {
		return err
	}
	if df.Kind == statefile.Snapshot && df.Chain.IsZero() && sum.Records > 0 {
		// A zero chain is not compared: no delta has ever been written.
		return fmt.Errorf("%w: it has %d entries of a version that has none", statefile.ErrMismatch, sum.Records)
	}
	l.at.Files++
	l.at.Bytes = done + df.Size
	l.stats.Files++
	l.stats.Bytes += df.Size
	l.stats.files = append(l.stats.files, file{
		version: df.Version, name: df.Name, size: df.Size,
		whole: df.Base || df.Kind == statefile.Snapshot, good: true,
	})
	l.tell(m)
	return nil
}

func (l *loading[K, S]) read(n int, m *statemap.Map[K, S]) {
	l.at.Bytes += int64(n)
	if l.unseen += int64(n); l.unseen >= progressBytes {
		l.tell(m)
	}
}

func (l *loading[K, S]) tell(m *statemap.Map[K, S]) {
	l.unseen = 0
	if l.progress != nil {
		l.at.Keys = int64(m.Len())
		l.progress(l.at)
	}
}

func (l *loading[K, S]) finish(f *checkpoint.Files, m *statemap.Map[K, S]) {
	l.stats.Keys = int64(m.Len())
	l.stats.Repaired = len(l.stats.Bad)
	if e := l.o.c.Expect; e > 0 && l.stats.Repaired == 0 && l.n-l.stats.Head >= e {
		l.stats.Repaired = 1 // it was deleted, or its run ended before it was written
	}
	l.at.Done = true
	l.tell(m)
}

// fail makes the load's error. f is the file at fault, or nil.
func (l *loading[K, S]) fail(f *checkpoint.File, err error) error {
	if cause := context.Cause(l.ctx); cause != nil && errors.Is(err, cause) {
		return err
	}
	e := &LoadError{Operator: l.o.c.Operator.Name, Partition: l.part, Version: l.n, Tried: l.stats.Bad, Err: err}
	if f != nil {
		e.File, e.At = f.Name, f.Version
	}
	return e
}
