package milltool

import (
	"bytes"
	"context"
	"io"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

// stagingMost is how many bytes of files fork holds back.
const stagingMost = 64 << 20

// staging writes the files of a new root, in the order in which they are put. The
// first ones it holds back: reading them takes a moment, while writing and syncing
// them takes long enough for a running job to delete those that are still to be read.
type staging struct {
	to      vfs.Store
	held    []stagedFile
	size    int64
	written bool // nothing is held back any more
}

type stagedFile struct {
	name string
	b    []byte
}

// put takes a file of about so many bytes.
func (s *staging) put(ctx context.Context, name string, size int64, write func(io.Writer) error) error {
	if !s.written && s.size+size <= stagingMost {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		s.held = append(s.held, stagedFile{name, b.Bytes()})
		s.size += int64(b.Len())
		return nil
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	return s.to.PutIfAbsent(ctx, name, write)
}

// flush writes what was held back.
func (s *staging) flush(ctx context.Context) error {
	s.written = true
	for _, f := range s.held {
		err := s.to.PutIfAbsent(ctx, f.name, func(w io.Writer) error {
			_, err := w.Write(f.b)
			return err
		})
		if err != nil {
			return err
		}
	}
	s.held = nil
	return nil
}

// clear takes away what was written: the metadata first and the commits last, so that
// no job takes what is left for a root, or for a fresh one, if it breaks off.
func (s *staging) clear(ctx context.Context) error {
	s.held, s.size = nil, 0
	if !s.written {
		return nil
	}
	for _, folder := range []string{"metadata/", "state/", "owner/", "offsets/", ""} {
		list, err := s.to.List(ctx, folder)
		if err != nil {
			return err
		}
		for _, o := range list {
			if o.Name == checkpoint.LockName {
				continue
			}
			if err := s.to.Delete(ctx, o.Name); err != nil {
				return err
			}
		}
	}
	return nil
}
