package receiver

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// forget removes the segments of which all records are below offset, but never
// the newest. A segment that does not go is tried again the next time.
func (j *journal) forget(offset int64) error {
	j.mu.Lock()
	for len(j.segments) > 1 && (j.segments[1].first <= offset || sabotage.On("receiver-forgets-early")) {
		j.gone = append(j.gone, j.segments[0])
		j.segments = j.segments[1:]
	}
	j.mu.Unlock()
	return j.tidy()
}

// discard removes a file that was begun in vain; if that fails, tidy tries again.
func (j *journal) discard(path string) {
	if remove(j.fs, path) == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.gone = append(j.gone, &segment{path: path})
}

// tidy removes the files that are to go, the oldest first, and makes each removal
// durable before the next. So whatever crashes, and whatever a power loss brings back
// of them, is the newest of them: it joins those that stayed, and the next start finds
// a row without holes.
func (j *journal) tidy() error {
	j.tidying.Lock()
	defer j.tidying.Unlock()
	for {
		s := j.nextGone()
		if s == nil {
			return nil
		}
		err := remove(j.fs, s.path)
		if err == nil && !sabotage.On("receiver-removals-unsynced") {
			err = j.fs.SyncDir(j.dir)
		}
		if err != nil {
			return fmt.Errorf("receiver log: %w", err)
		}
		j.mu.Lock()
		j.gone = slices.DeleteFunc(j.gone, func(x *segment) bool { return x == s })
		j.wake() // who waits for room
		j.mu.Unlock()
	}
}

// nextGone is the oldest file that is to go, nil if there is none.
func (j *journal) nextGone() *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.gone) == 0 {
		return nil
	}
	return slices.MinFunc(j.gone, func(a, b *segment) int { return strings.Compare(a.path, b.path) })
}

func remove(fsys vfs.FS, path string) error {
	err := fsys.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
