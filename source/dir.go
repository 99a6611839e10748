package source

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// Directory reads the lines of the files that appear in a directory, each file
// once, by its name. Make it with [Dir] or [DirLines] and set the fields before
// Open. Files that are there at the first start are read too.
//
// Only complete files are read: best is to write a file elsewhere, or under a
// name that begins with "." or "_" or ends in ".tmp", and to move it. Such names,
// and folders, are not looked at. A file written in place counts as complete when
// its size and time stood still from one plan to the next (Settle); what is
// appended after that is never read.
//
// A file in reading is a partition: its name, with byte offsets, its size as
// Epoch. The names read to the end are in one more range, ".", that holds no
// records; so the position grows with the number of files in the directory. Move
// files away after reading: a name is forgotten when its file is gone, and a file
// that comes under it again is read.
type Directory[T any] struct {
	// MaxBytesPerBatch bounds a plan besides the engine's limits. 0 means 32 MiB.
	MaxBytesPerBatch int64
	// MaxFilesPerBatch is how many files are in reading at once. 0 means 100.
	MaxFilesPerBatch int
	// MaxLine is the longest line in bytes; a longer one is a LineTooLongError.
	// 0 means 4 MiB.
	MaxLine int
	// Settle is how many more plans must see a file unchanged before it is read.
	// 0 means 1; -1 reads it at first sight, for files that are moved in whole.
	Settle int

	fsys vfs.FS
	dir  string
	make func(text, file string, offset int64) T

	mu      sync.Mutex
	open    bool
	done    map[string]bool // read to the end, and still there
	reading []dirFile       // sorted by name
	fresh   map[string]candidate

	health fileHealth
}

type dirFile struct {
	name      string
	pos, size int64
}

type candidate struct {
	info  vfs.Info
	looks int
}

// doneRange is the partition that lists the files read to the end.
const doneRange = "."

// Dir returns a source of the lines of the files that appear in dir.
func Dir(fsys vfs.FS, dir string) *Directory[string] {
	return &Directory[string]{fsys: fsys, dir: dir, make: textOnly}
}

// DirLines is Dir with the origin beside each line.
func DirLines(fsys vfs.FS, dir string) *Directory[Line] {
	return &Directory[Line]{fsys: fsys, dir: dir, make: withOrigin}
}

func (s *Directory[T]) String() string { return fmt.Sprintf("directory %q", s.dir) }

// Validate implements Validator.
func (s *Directory[T]) Validate() error {
	if s.MaxBytesPerBatch < 0 || s.MaxFilesPerBatch < 0 || s.MaxLine < 0 || s.Settle < -1 {
		return fmt.Errorf("%v: MaxBytesPerBatch is %d, MaxFilesPerBatch %d, MaxLine %d, Settle %d: none may be negative (Settle: -1)",
			s, s.MaxBytesPerBatch, s.MaxFilesPerBatch, s.MaxLine, s.Settle)
	}
	return nil
}

// Open implements Source. The directory must exist.
func (s *Directory[T]) Open(ctx context.Context, last *Plan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	if _, err := s.fsys.ReadDir(s.dir); err != nil {
		return fmt.Errorf("%v: %w", s, err)
	}
	done, reading := map[string]bool{}, []dirFile{}
	if last != nil {
		for _, r := range last.Ranges {
			if r.Partition == doneRange {
				var names []string
				if err := json.Unmarshal([]byte(r.Epoch), &names); err != nil {
					return fmt.Errorf("%v: the list of files read, in the last plan: %w", s, err)
				}
				for _, n := range names {
					done[fileOf(n)] = true
				}
				continue
			}
			size, err := s.sizeIn(r)
			if err != nil {
				return err
			}
			reading = append(reading, dirFile{fileOf(r.Partition), r.Until, size})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.reading, s.fresh, s.open = done, reading, map[string]candidate{}, true
	s.health.reset()
	return nil
}

// Plan implements Source.
func (s *Directory[T]) Plan(ctx context.Context, l Limits) (Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return Plan{}, fmt.Errorf("%v: %w", s, ErrNotOpen)
	}
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	there, err := s.fsys.ReadDir(s.dir)
	if err != nil {
		return Plan{}, fmt.Errorf("%v: %w", s, err)
	}
	reading, done, fresh := s.look(there)
	lags := make([]int64, len(reading))
	for i, f := range reading {
		lags[i] = f.size - f.pos
	}
	records := Share(lags, l) // at least as many bytes wait as records
	ends, err := s.ends(ctx, reading, lags, records, least(orDefault(s.MaxBytesPerBatch, defaultMaxBytes), l.Bytes), l.Epoch)
	if err != nil {
		return Plan{}, err
	}
	limited := l.Records != 0 || l.PerPartition != 0
	names := slices.Sorted(maps.Keys(done))
	for i, n := range names {
		names[i] = partitionOf(n)
	}
	list, err := json.Marshal(names)
	if err != nil {
		return Plan{}, fmt.Errorf("%v: %w", s, err)
	}
	p := Plan{Ranges: []Range{{Partition: doneRange, From: int64(len(names)), Until: int64(len(names)), Epoch: string(list)}}}
	for i := range reading {
		f := &reading[i]
		until := ends[i]
		if limited {
			begins, err := s.span(f.name, f.pos, until, f.size).begins(ctx, records[i]+1)
			if err != nil {
				return Plan{}, err
			}
			if int64(len(begins)) > records[i] {
				until = begins[records[i]]
			}
		}
		p.Ranges = append(p.Ranges, Range{Partition: partitionOf(f.name), From: f.pos, Until: until, Epoch: strconv.FormatInt(f.size, 10)})
		f.pos = until
	}
	s.planned(p, reading, fresh)
	s.reading, s.done, s.fresh = reading, done, fresh
	return p, nil
}

// ends says where each file's part of the plan ends, if all parts together may take so
// many bytes of whole lines. One line of one file goes whatever its length, in each
// epoch of another file.
func (s *Directory[T]) ends(ctx context.Context, files []dirFile, lags, records []int64, most int64, epoch uint64) ([]int64, error) {
	out := make([]int64, len(files))
	waiting, some := int64(0), []int{}
	for i, f := range files {
		out[i] = f.pos
		if records[i] > 0 && most > 0 {
			waiting += lags[i]
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		return out, nil
	}
	if waiting <= most {
		for _, i := range some {
			out[i] = files[i].size
		}
		return out, nil
	}
	first := some[mix(epoch)%uint64(len(some))]
	f := files[first]
	end, one, err := s.span(f.name, f.pos, f.size, f.size).line(ctx)
	if out[first] = end; err != nil || one >= most && !sabotage.On("used-up-is-no-limit") {
		return out, err
	}
	lags = slices.Clone(lags)
	lags[first] -= end - f.pos
	share := Share(lags, Limits{Records: most - one, Epoch: epoch})
	for _, i := range some {
		f := files[i]
		if out[i], _, err = s.span(f.name, out[i], f.size, f.size).whole(ctx, share[i], false); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// mix makes of the numbers of epochs others that follow no pattern.
func mix(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// look compares the listing with what is known. It changes nothing, so that a
// plan that fails can be asked for again.
func (s *Directory[T]) look(there []vfs.Info) (reading []dirFile, done map[string]bool, fresh map[string]candidate) {
	done, fresh = map[string]bool{}, map[string]candidate{}
	known, unread := map[string]bool{}, map[string]bool{}
	for _, f := range s.reading {
		known[f.name] = true
		if f.pos < f.size {
			unread[f.name] = true
			reading = append(reading, f)
		}
	}
	settle := max(orDefault(s.Settle, 1), 0)
	for _, info := range there {
		name := info.Name
		switch {
		case info.Dir || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || strings.HasSuffix(name, ".tmp"):
		case s.done[name]:
			done[name] = true
		case unread[name]:
		case known[name] && !sabotage.On("file-read-twice"):
			done[name] = true
		default:
			c := candidate{info: info}
			if old, ok := s.fresh[name]; ok && old.info == info {
				c.looks = old.looks + 1
			}
			if c.looks < settle || len(reading) >= orDefault(s.MaxFilesPerBatch, 100) {
				fresh[name] = c
				continue
			}
			reading = append(reading, dirFile{name: name, size: info.Size})
		}
	}
	slices.SortFunc(reading, func(a, b dirFile) int { return strings.Compare(a.name, b.name) })
	return reading, done, fresh
}

func (s *Directory[T]) span(name string, from, until, size int64) span {
	return span{fsys: s.fsys, path: filepath.Join(s.dir, name), from: from, until: until, size: size, maxLine: orDefault(s.MaxLine, defaultMaxLine)}
}

// sizeIn checks a file's range and returns the size it was planned with.
func (s *Directory[T]) sizeIn(r Range) (int64, error) {
	size, err := strconv.ParseInt(r.Epoch, 10, 64)
	if err != nil || r.Partition == "" || filepath.Base(fileOf(r.Partition)) != fileOf(r.Partition) {
		return 0, &RangeError{Source: s.String(), Range: r, Why: "it does not name a file of the directory and its size"}
	}
	if r.From < 0 || r.Until < r.From || r.Until > size {
		return 0, &RangeError{Source: s.String(), Range: r, Why: fmt.Sprintf("the file had %d bytes when it was planned", size)}
	}
	return size, nil
}

// Read implements Source.
func (s *Directory[T]) Read(ctx context.Context, r Range, emit func(offset int64, v T) error) error {
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	if !open {
		return fmt.Errorf("%v: %w", s, ErrNotOpen)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.Partition == doneRange && r.From == r.Until {
		return nil
	}
	size, err := s.sizeIn(r)
	if err != nil {
		return err
	}
	sp := s.span(fileOf(r.Partition), r.From, r.Until, size)
	err = sp.lines(ctx, func(at int64, line string) error { return emit(at, s.make(line, sp.path, at)) })
	if err == nil {
		s.health.moved(r)
	}
	return err
}

// notText begins the name of a partition whose file's name is not UTF-8 text, in
// which plans are kept; the bytes follow in hex. No file's name has a slash.
const notText = "/"

// partitionOf names the partition of a file.
func partitionOf(file string) string {
	if utf8.ValidString(file) {
		return file
	}
	return notText + hex.EncodeToString([]byte(file))
}

// fileOf is the file of a partition.
func fileOf(partition string) string {
	code, ok := strings.CutPrefix(partition, notText)
	if !ok {
		return partition
	}
	file, err := hex.DecodeString(code)
	if err != nil {
		return partition // no plan of this source: not the name of a file
	}
	return string(file)
}

// Locate implements Locator.
func (s *Directory[T]) Locate(partition string, offset int64) string {
	return fmt.Sprintf("%s, byte %d", filepath.Join(s.dir, fileOf(partition)), offset)
}

// Sparse implements Sparse: offsets are bytes.
func (s *Directory[T]) Sparse() bool { return true }

// Committed implements Source.
func (s *Directory[T]) Committed(ctx context.Context, p Plan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	read := 0
	for _, r := range p.Ranges {
		if r.Partition != doneRange && strconv.FormatInt(r.Until, 10) == r.Epoch {
			read++
		}
	}
	s.health.committed(p, read)
	return nil
}

// Close implements Source. A closed directory can be opened again.
func (s *Directory[T]) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
	return nil
}
