package receiver

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// write writes a group, without mu while it does I/O. mu is held around it.
func (j *journal) write(g *group) {
	j.writing, j.pending = true, nil
	j.wake() // who did not fit into this group begins the next
	first := j.durable
	j.mu.Unlock()
	err := j.put(g, first)
	j.mu.Lock()
	if err != nil {
		// What of it is in the file is not known, so the file is not used again.
		if j.file != nil {
			_ = j.file.Close()
			j.file = nil
		}
		err = fmt.Errorf("receiver log %s: %d records from offset %d on: %w", j.dir, g.count, first, err)
	} else {
		s := j.segments[len(j.segments)-1]
		s.blocks = append(s.blocks, mark{first, s.size})
		s.size += int64(len(g.data))
		j.durable += int64(g.count)
	}
	g.err, g.done, g.data = err, true, nil
	j.writing = false
	j.wake()
}

// put writes and syncs a group; only one goroutine is here.
func (j *journal) put(g *group, first int64) error {
	if j.file == nil || j.newest().size >= j.segmentBytes {
		if err := j.roll(first); err != nil {
			return err
		}
	}
	s := j.newest()
	endBlock(g.data, s.layout.salt, s.size, first, g.count)
	if _, err := j.file.Write(g.data); err != nil {
		return err
	}
	if sabotage.On("receiver-no-sync") {
		return nil
	}
	return j.file.Sync()
}

func (j *journal) newest() *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.segments[len(j.segments)-1]
}

// roll begins a segment at an offset. If that fails, nothing is left of it; if it does
// not, nothing is left of one before it in which no block came to stand.
func (j *journal) roll(first int64) error {
	if j.file != nil {
		err := j.file.Close()
		j.file = nil
		if err != nil {
			return err
		}
	}
	j.number++ // also if what follows fails: a name is used once
	path := filepath.Join(j.dir, segmentName(j.number))
	l := layout{version: version, salt: newSalt()}
	f, err := j.begin(path, appendHead(nil, first, l.salt))
	if err != nil {
		if !errors.Is(err, fs.ErrExist) { // which is nobody's here, but not ours to remove
			j.discard(path)
		}
		return err
	}
	if vain := j.begun(f, &segment{path: path, layout: l, first: first, size: headSize}); vain != nil {
		j.discard(vain.path)
	}
	return nil
}

// begun puts a new segment behind the others. If the one before it has no block, it is
// no longer among them, and returned.
func (j *journal) begun(f vfs.File, s *segment) (vain *segment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.segments); n > 0 && len(j.segments[n-1].blocks) == 0 {
		vain = j.segments[n-1]
		j.segments = j.segments[:n-1]
	}
	j.file = f
	j.segments = append(j.segments, s)
	return vain
}

// newSalt is a number that no sender knows; it cannot fail.
func newSalt() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// begin makes a segment's file, durable with its name.
func (j *journal) begin(path string, head []byte) (vfs.File, error) {
	f, err := j.fs.Create(path)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(head)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = j.fs.SyncDir(j.dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// close closes the file, after what is being appended. It comes after shut.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	for j.writing || j.pending != nil { // of a receiver that left goroutines behind
		if err := j.wait(context.Background()); err != nil {
			return err
		}
	}
	if j.file == nil {
		return nil
	}
	f := j.file
	j.file = nil
	// The mark is worth having, but nothing is lost without it.
	s, end := j.segments[len(j.segments)-1], beginBlock(nil)
	endBlock(end, s.layout.salt, s.size, j.durable, 0)
	if _, err := f.Write(end); err == nil {
		_ = f.Sync()
	}
	return f.Close()
}
