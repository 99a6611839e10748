package store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/vfs"
)

// Root says which files count; *checkpoint.Root does. It caches commits: a
// load asks for the same ones for every partition. An absent commit is an error
// that answers fs.ErrNotExist. What it returns is not changed. It may be used
// from any goroutine.
type Root interface {
	// Commit gives the commit of an epoch.
	Commit(ctx context.Context, epoch uint64) (*checkpoint.Commit, error)
	// Files chooses the files of version n of a partition, passing over the
	// snapshots whose names are among bad.
	Files(ctx context.Context, number, part int, n uint64, bad ...string) (*checkpoint.Files, error)
}

var _ Root = (*checkpoint.Root)(nil)

// Put creates a state file exclusively, as vfs.Store.PutIfAbsent does;
// Session.Put of package checkpoint is one.
type Put func(ctx context.Context, name string, write func(io.Writer) error) error

// Config says what an [Operator] needs. All of the first five are required.
type Config[K comparable, S any] struct {
	// Store holds the files; they are only read through it.
	Store vfs.Store
	// Root says which files count.
	Root Root
	// Operator is the operator as the metadata in force has it: its name,
	// number, layout, partitions, Since and Deadlines are used.
	Operator checkpoint.Operator
	// Key and State are the encodings.
	Key   *codec.Key[K]
	State codec.Codec[S]

	// LoadState decodes the states of files, where they are those of an older
	// type (see codec.Reader). Nil means State.
	LoadState codec.Codec[S]
	// Put writes files, under names with Term. An operator without it can only
	// load.
	Put  Put
	Term uint64
	// Deltas and Snapshots are the compressions of the two kinds of files; the
	// zero values are none.
	Deltas, Snapshots statefile.Compression
	// Expect is the number of versions after which the policy has a snapshot:
	// a load that finds none in so many versions counts it as lost. 0 expects
	// none.
	Expect uint64
}

// Operator writes and loads the files of one operator. Its methods may be
// called from any goroutine, for different partitions at the same time.
type Operator[K comparable, S any] struct {
	c     Config[K, S]
	load  codec.Codec[S]
	tools pool.FreeList[tools[K, S]]
}

// tools are what one worker writes and reads with. They keep their buffers, so
// that nothing is allocated per file.
type tools[K comparable, S any] struct {
	encoder *statefile.Encoder[K, S]
	loader  *statefile.Loader[K, S]
}

// NewOperator makes an operator. It touches no file.
func NewOperator[K comparable, S any](c Config[K, S]) (*Operator[K, S], error) {
	if c.Store == nil || c.Root == nil || c.Key == nil || c.State == nil {
		return nil, fmt.Errorf("operator %q: %w", c.Operator.Name, errIncomplete)
	}
	o := &Operator[K, S]{c: c, load: c.LoadState}
	if o.load == nil {
		o.load = c.State
	}
	return o, nil
}

var errIncomplete = errors.New("store, root, key and state codec are required")

// Info gives the operator's metadata.
func (o *Operator[K, S]) Info() checkpoint.Operator { return o.c.Operator }

func (o *Operator[K, S]) name(part int, version uint64, kind statefile.Kind) checkpoint.StateName {
	return checkpoint.StateName{
		Number: o.c.Operator.Number, Layout: o.c.Operator.Layout, Part: part,
		Version: version, Term: o.c.Term, Kind: kind,
	}
}

// ID names a partition of the operator for the maintainer.
func (o *Operator[K, S]) ID(part int) Partition {
	return Partition{o.c.Operator.Number, o.c.Operator.Layout, part}
}
