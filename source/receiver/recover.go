package receiver

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/statemill/statemill/vfs"
)

const segmentSuffix = ".segment"

func segmentName(number uint64) string { return fmt.Sprintf("%020d%s", number, segmentSuffix) }

// DamagedError is a log whose files do not fit together: one is missing, or was
// changed in a place that had been acknowledged.
type DamagedError struct {
	// Path is the file or directory.
	Path string
	// Reason is what is wrong with it.
	Reason string
}

// Error names the file, the fault and the next step.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("receiver log %s: %s: bring the file back, or start with a new directory and a new checkpoint", e.Path, e.Reason)
}

// Permanent says that trying again is of no use.
func (e *DamagedError) Permanent() bool { return true }

// openJournal finds out what is in the directory, makes it durable, and begins a
// new segment with the first append.
func openJournal(fsys vfs.FS, dir string, segmentBytes, maxBytes int64) (*journal, error) {
	j := &journal{fs: fsys, dir: dir, segmentBytes: segmentBytes, maxBytes: maxBytes, changed: make(chan struct{})}
	if err := makeDir(fsys, dir); err != nil {
		return nil, err
	}
	files, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files { // sorted, so by number
		number, ok := strings.CutSuffix(f.Name, segmentSuffix)
		if !ok || f.Dir {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || segmentName(n) != f.Name {
			continue
		}
		j.number = n
		s, end, err := j.scan(filepath.Join(dir, f.Name))
		if err != nil {
			return nil, err
		}
		if s != nil {
			if err := j.add(s, end); err != nil {
				return nil, err
			}
		}
	}
	if len(j.segments) == 0 {
		// The first one is made here, so that there is always one.
		if err := j.roll(0); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// makeDir makes a directory so that it outlives a crash.
func makeDir(fsys vfs.FS, dir string) error {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		_, err := fsys.Stat(d)
		if err == nil || filepath.Dir(d) == d {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, d)
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for _, d := range missing {
		if err := fsys.SyncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

// scan reads the whole blocks of a segment, and tells the offset after them. It
// is nil if the file broke off before its head was whole: then it holds nothing.
func (j *journal) scan(path string) (s *segment, end int64, err error) {
	f, err := j.fs.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	// What is read here counts from now on, so it must outlive the next crash,
	// even if its writer did not come to sync it.
	if err := f.Sync(); err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if info.Size < headSize {
		return nil, 0, nil
	}
	head := make([]byte, headSize)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, 0, err
	}
	first, err := readHead(head)
	if err != nil {
		if allZero(head) { // its length was on disk, its bytes were not
			return nil, 0, nil
		}
		return nil, 0, &DamagedError{Path: path, Reason: err.Error()}
	}
	s = &segment{path: path, first: first, size: headSize}
	end = first
	var buf []byte
	for {
		b, grown, ok, err := readBlock(f, s.size, info.Size, buf)
		if err != nil {
			return nil, 0, err
		}
		buf = grown
		if !ok || b.first != end || b.count <= 0 {
			return s, end, nil
		}
		s.blocks = append(s.blocks, mark{b.first, s.size})
		s.size += b.size
		end += int64(b.count)
	}
}

// add puts a segment behind the others. It takes over from its first offset on:
// up to there the one before must reach, and what that has beyond was never
// acknowledged.
func (j *journal) add(s *segment, end int64) error {
	if n := len(j.segments); n > 0 {
		last := j.segments[n-1]
		if s.first < last.first {
			return &DamagedError{Path: s.path, Reason: fmt.Sprintf("it begins at offset %d, before the segment before it at %d", s.first, last.first)}
		}
		if s.first > j.durable {
			return &DamagedError{Path: last.path, Reason: fmt.Sprintf("it ends at offset %d, but the next segment begins at %d", j.durable, s.first)}
		}
	}
	j.segments = append(j.segments, s)
	j.durable = end
	return nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func remove(fsys vfs.FS, path string) error {
	err := fsys.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
