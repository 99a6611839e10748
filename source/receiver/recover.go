package receiver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/statemill/statemill/vfs"
)

const segmentSuffix = ".segment"

func segmentName(number uint64) string { return fmt.Sprintf("%020d%s", number, segmentSuffix) }

// openJournal finds out what is in the directory and makes it durable. Records below
// keep are not needed: what is wrong with files that hold no others is nothing to
// stop for. Nothing is removed yet; tidy does that.
func openJournal(fsys vfs.FS, dir string, segmentBytes, maxBytes, keep int64) (*journal, error) {
	j := &journal{fs: fsys, dir: dir, segmentBytes: segmentBytes, maxBytes: maxBytes, maxBlock: maxBlock, changed: make(chan struct{})}
	if err := makeDir(fsys, dir); err != nil {
		return nil, err
	}
	files, err := j.files()
	if err != nil {
		return nil, err
	}
	oldest, err := j.oldest(files, keep)
	if err != nil {
		return nil, err
	}
	j.gone = files[:oldest:oldest]
	for _, s := range files[oldest:] {
		whole, end, err := j.scan(s)
		if err != nil {
			return nil, err
		}
		if !whole {
			j.gone = append(j.gone, s)
			continue
		}
		if err := j.add(s, end); err != nil {
			return nil, err
		}
	}
	if len(j.segments) > 0 {
		// For the others the next one's offset tells whether anything is missing.
		if s := j.segments[len(j.segments)-1]; s.broken > 0 {
			return nil, changed(s.path, s.broken, j.durable)
		}
	}
	// The names count from now on as well, though their writer may not have come to
	// sync them: others are removed because these are there.
	if err := fsys.SyncDir(dir); err != nil {
		return nil, err
	}
	if len(j.segments) == 0 {
		// The first one is made here, so that there is always one.
		if err := j.roll(0); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// files lists the segments by number, with nothing of them known but the size.
func (j *journal) files() (out []*segment, err error) {
	files, err := j.fs.ReadDir(j.dir)
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
		out = append(out, &segment{path: filepath.Join(j.dir, f.Name), size: f.Size})
	}
	return out, nil
}

// oldest is the index of the newest file that begins at keep or below: it takes over
// from those before it, so they hold nothing that is needed. It is 0 if there is none.
func (j *journal) oldest(files []*segment, keep int64) (int, error) {
	for i := len(files) - 1; i > 0; i-- {
		head, err := j.readHead(files[i].path)
		if err != nil {
			return 0, err
		}
		if _, first, _, err := readHead(head); err == nil && first <= keep {
			return i, nil
		}
	}
	return 0, nil
}

// readHead reads the bytes of a file's head, or those that there are.
func (j *journal) readHead(path string) ([]byte, error) {
	f, err := j.fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, headSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return head[:n], nil
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

// scan reads the whole blocks of a segment, and tells the offset after them. It is not
// whole if the file broke off before its head was: then it holds nothing.
func (j *journal) scan(s *segment) (whole bool, end int64, err error) {
	f, err := j.fs.Open(s.path)
	if err != nil {
		return false, 0, err
	}
	defer f.Close()
	// What is read here counts from now on, so it must outlive the next crash,
	// even if its writer did not come to sync it.
	if err := f.Sync(); err != nil {
		return false, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return false, 0, err
	}
	head := make([]byte, min(headSize, info.Size))
	if err := readFull(f, head, 0); err != nil {
		return false, 0, err
	}
	l, first, size, err := readHead(head)
	if err != nil {
		// The head is on disk before the first block is begun. So a file that has no
		// block was still being made; its length may be there before its bytes. (One
		// of format 1 has a longer block than that.)
		if info.Size <= headSize && !errors.Is(err, errNewer) {
			return false, 0, nil
		}
		return false, 0, &DamagedError{Path: s.path, Offset: -1, Reason: err.Error()}
	}
	s.layout, s.first, s.size = l, first, size
	end = first
	var buf []byte
	for {
		b, grown, ok, err := l.readBlock(f, s.size, info.Size, buf)
		if err != nil {
			return false, 0, err
		}
		buf = grown
		if !ok || b.first != end {
			broken, err := l.follows(f, s.size, b.end, end, info.Size)
			if broken {
				s.broken = s.size
			}
			return true, end, err
		}
		if b.count == 0 { // the mark of Close
			return true, end, nil
		}
		s.blocks = append(s.blocks, mark{b.first, s.size})
		s.size = b.end
		end += int64(b.count)
	}
}

// add puts a segment behind the others. It takes over from its first offset on:
// up to there the one before must reach, and what that has beyond was never
// acknowledged. If that one has no block at all, it was begun in vain and goes.
func (j *journal) add(s *segment, end int64) error {
	if n := len(j.segments); n > 0 {
		last := j.segments[n-1]
		if s.first < last.first {
			return &DamagedError{Path: s.path, Offset: -1, Reason: fmt.Sprintf("it begins at offset %d, before the segment before it at %d", s.first, last.first)}
		}
		if s.first > j.durable {
			if last.broken > 0 {
				return changed(last.path, last.broken, j.durable)
			}
			return &DamagedError{Path: last.path, Offset: j.durable, Reason: fmt.Sprintf("it ends at offset %d, but the next segment begins at %d", j.durable, s.first)}
		}
		if len(last.blocks) == 0 {
			j.gone = append(j.gone, last)
			j.segments = j.segments[:n-1]
		}
	}
	j.segments = append(j.segments, s)
	j.durable = end
	return nil
}
