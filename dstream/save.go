package dstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"time"

	"github.com/statemill/statemill/batchfiles"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
)

// SaveAsTextFiles saves every batch of a stream as lines of text, in a folder of its
// own that is named as Spark names it:
//
//	<prefix>-<batch time in ms>[.<suffix>]/part-00000, part-00001 …, _SUCCESS
//
// There is a part for each partition of the stream and a line for each record, written as
// Print writes it; records of another form are made by Map. A record that holds a newline
// is several lines. The prefix is a path on the disk, absolute or from the directory that
// the process is in when the job is built (see SaveIn for other places). If it ends in a
// slash, folders are named by the time alone.
//
// A batch is to be read once its _SUCCESS is there, which is written last; a folder
// without one is not. That is so before the batch is committed: as with every plain
// output, a batch that is redone after a crash is saved again, under the same name. What
// is there already is kept if it is the same, byte for byte, as it is for functions that
// depend on their arguments alone. Else nothing is changed, and the batch fails with an
// error for which errors.Is(err, batchfiles.ErrDiffers) holds. A batch that a run without
// a checkpoint was saving when it ended stays without _SUCCESS.
//
// Files are created exclusively and never replaced, so a run that was thought dead and
// wakes up changes nothing that is there. Failures of the disk are tried again with
// growing pauses (WithIORetry) before they fail the output. See package batchfiles for
// the files, and for reading them from elsewhere.
func SaveAsTextFiles[T any](in Stream[T], prefix, suffix string, opts ...OpOption) {
	save(in, "SaveAsTextFiles", prefix, suffix, opts, nil, func(ctx context.Context, store vfs.Store, folder string, r *rdd.RDD[T]) error {
		return batchfiles.SaveText(ctx, store, folder, r, text[T])
	})
}

// SaveAsRecordFiles is SaveAsTextFiles of records of any type that state may have, in
// their stored form (package codec), for ReadRecordFiles.
func SaveAsRecordFiles[T any](in Stream[T], prefix, suffix string, opts ...OpOption) {
	c, err := codec.For[T]()
	save(in, "SaveAsRecordFiles", prefix, suffix, opts, err, func(ctx context.Context, store vfs.Store, folder string, r *rdd.RDD[T]) error {
		return batchfiles.SaveRecords(ctx, store, folder, r, c)
	})
}

// ReadRecordFiles is the dataset of batches that SaveAsRecordFiles saved: folders on the
// disk, one after the other, each with the partitions that it was saved with. It is for
// Constant, for the bodies of Transform and ForeachRDD, and for programs without a
// stream. What is read is checked against what was saved. The files are read whenever the
// dataset is computed.
//
// A folder without _SUCCESS is batchfiles.ErrUnfinished. Records that were saved by
// another form of T are read where nothing is lost by it, else the error is a
// *codec.SchemaError; batchfiles.Records takes migrations, and reads from other places.
func ReadRecordFiles[T any](folders ...string) (*rdd.RDD[T], error) {
	if len(folders) == 0 {
		return nil, errors.New("dstream: read record files: no folder is named")
	}
	all := make([]*rdd.RDD[T], len(folders))
	for i, folder := range folders {
		dir, name := filepath.Split(filepath.Clean(folder))
		store, err := vfs.NewDir(vfs.Disk(), dir, "read")
		if err == nil {
			all[i], err = batchfiles.Records[T](context.Background(), store, name, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("dstream: read record files of %s: %w", folder, err)
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return rdd.Union(all...), nil
}

// SaveIn lets SaveAsTextFiles and SaveAsRecordFiles save in a store other than the disk:
// an object store, or one in memory for a test. The prefix is a name in it then. The store
// must serve this run alone (see vfs.NewDir for its tag).
func SaveIn(store vfs.Store) OpOption {
	return func(c *opConfig) { c.saveIn, c.saveInSet = store, true }
}

// save registers an output that saves every batch.
func save[T any](in Stream[T], call, prefix, suffix string, opts []OpOption, wrong error, do func(ctx context.Context, store vfs.Store, folder string, r *rdd.RDD[T]) error) {
	place, err := newSavePlace(prefix, suffix, opts)
	if p := nodeOf(in); p != nil && p.slide%time.Millisecond != 0 {
		wrong = errors.Join(wrong, fmt.Errorf("a batch comes every %v, and folders are named by milliseconds: give the context an interval of whole ones", p.slide))
	}
	o := addOutput(in, call, errors.Join(wrong, err), opts, func(b *batchRun, c *outputContext, r *rdd.RDD[T]) error {
		folder := batchfiles.Name(place.prefix, suffix, b.batch.Time)
		return retryFiles(b, c, func() error { return do(c.ctx, place.store, folder, r) })
	})
	ssc := o.node.ssc
	ssc.mu.Lock()
	defer ssc.mu.Unlock()
	for _, other := range ssc.outputs {
		if other.saves != nil && err == nil && other.saves.same(place) {
			ssc.faults = append(ssc.faults, &Fault{Caller: o.caller, Call: "dstream." + call,
				Err: fmt.Errorf("the output at %s saves under the same names: give them another prefix or suffix", other.caller)})
		}
	}
	o.saves = place
}

// savePlace is where an output saves.
type savePlace struct {
	store          vfs.Store
	root           string // the folder of the store, "" for one of SaveIn
	prefix, suffix string // in the store
}

// newSavePlace finds the place, and what is wrong with it.
func newSavePlace(prefix, suffix string, opts []OpOption) (p *savePlace, err error) {
	p = &savePlace{prefix: filepath.ToSlash(prefix), suffix: suffix}
	var c opConfig
	for _, o := range opts {
		if o != nil {
			o(&c)
		}
	}
	switch {
	case c.saveInSet && c.saveIn == nil:
		return p, errors.New("the store is nil")
	case c.saveInSet:
		p.store = c.saveIn
	default:
		var dir string
		dir, p.prefix = filepath.Split(prefix)
		if p.root, err = filepath.Abs(dir); err != nil {
			return p, err
		}
		// No other run has this tag, so that none touches what this one is writing.
		if p.store, err = vfs.NewDir(vfs.Disk(), p.root, fmt.Sprintf("%016x", rand.Uint64())); err != nil {
			return p, err
		}
	}
	return p, batchfiles.CheckName(p.prefix, suffix)
}

// same says that another output would write the same files.
func (p *savePlace) same(o *savePlace) bool {
	if p.root != o.root || p.prefix != o.prefix || p.suffix != o.suffix {
		return false
	}
	return p.root != "" || reflect.ValueOf(p.store).Comparable() && reflect.ValueOf(o.store).Comparable() && p.store == o.store
}

// retryFiles tries again what a store failed to do.
func retryFiles(b *batchRun, c *outputContext, do func() error) error {
	var pause backoff
	for {
		err := do()
		var file *batchfiles.FileError
		if !errors.As(err, &file) || permanent(err) || !pause.wait(c.ctx, b.run.exec.clock, b.run.exec.ioRetry, b.run.exec.retryNow) {
			return err
		}
	}
}
