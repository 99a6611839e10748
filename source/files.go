package source

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"sort"
	"strconv"
	"sync"

	"github.com/statemill/statemill/vfs"
)

// Files reads the lines of a fixed list of text files, in the order of the list.
// Make it with [TextFiles] or [FileLines] and set the fields before Open.
//
// The files are read as one long text: an offset is the byte in it at which a
// line begins. A plan takes the next part and cuts it into Partitions ranges "0",
// "1", … one behind the other. So the records come in the order of the files,
// whatever the number of partitions and the size of the batches.
//
// A file must stay as it was at Open: what is appended later is not read (that is
// what [Directory] is for), and a file that was cut is a [ChangedError]. When the
// list or a size has changed since the plan of an earlier run, Open refuses.
type Files[T any] struct {
	// Partitions is the number of ranges in a plan: how many tasks read at once.
	// 0 means 4.
	Partitions int
	// MaxBytesPerBatch bounds a plan besides the engine's limits. 0 means 32 MiB.
	MaxBytesPerBatch int64
	// MaxLine is the longest line in bytes; a longer one is a LineTooLongError.
	// 0 means 4 MiB.
	MaxLine int

	fsys  vfs.FS
	paths []string
	make  func(text, file string, offset int64) T

	mu    sync.RWMutex
	open  bool
	sizes []int64
	begin []int64 // begin[i] is where file i begins in the whole; one more for the end
	epoch string
	pos   int64

	health fileHealth
}

// TextFiles returns a source of the lines of the files, without their ends
// (\n or \r\n). Locate tells where a line stands.
func TextFiles(fsys vfs.FS, paths ...string) *Files[string] {
	return &Files[string]{fsys: fsys, paths: paths, make: textOnly}
}

// FileLines is TextFiles with the origin beside each line.
func FileLines(fsys vfs.FS, paths ...string) *Files[Line] {
	return &Files[Line]{fsys: fsys, paths: paths, make: withOrigin}
}

// Validate implements Validator.
func (s *Files[T]) Validate() error {
	if len(s.paths) == 0 {
		return fmt.Errorf("text files: no file was given")
	}
	if s.Partitions < 0 || s.MaxBytesPerBatch < 0 || s.MaxLine < 0 {
		return fmt.Errorf("text files: Partitions is %d, MaxBytesPerBatch %d, MaxLine %d: none may be negative", s.Partitions, s.MaxBytesPerBatch, s.MaxLine)
	}
	return nil
}

// Open looks at every file, so that one that is missing or unreadable is an
// error at the start.
func (s *Files[T]) Open(ctx context.Context, last *Plan) error {
	if err := s.Validate(); err != nil {
		return err
	}
	sizes, begin := []int64{}, []int64{0}
	list := fnv.New64a()
	for i, path := range s.paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		size, err := sizeOf(s.fsys, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(list, "%q %d\n", path, size)
		sizes = append(sizes, size)
		begin = append(begin, begin[i]+size)
	}
	epoch := fmt.Sprintf("%016x", list.Sum64())
	pos := int64(0)
	if last != nil {
		for _, r := range last.Ranges {
			if r.Epoch != epoch {
				return &ChangedError{Source: "text files", What: fmt.Sprintf(
					"the list of files or the size of one has changed since the last plan (fingerprint %s, now %s): restore them, or start from a new checkpoint", r.Epoch, epoch)}
			}
			pos = max(pos, r.Until)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes, s.begin, s.epoch, s.pos, s.open = sizes, begin, epoch, pos, true
	s.health.reset()
	return nil
}

// sizeOf checks that a file can be read and returns its size.
func sizeOf(fsys vfs.FS, path string) (int64, error) {
	f, err := fsys.Open(path)
	if err != nil {
		if info, e := fsys.Stat(path); e == nil && info.Dir {
			return 0, fmt.Errorf("text file %q is a directory: use a directory source: %w", path, err)
		}
		return 0, fmt.Errorf("text file %q: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("text file %q: %w", path, err)
	}
	return info.Size, nil
}

// Plan implements Source.
func (s *Files[T]) Plan(ctx context.Context, l Limits) (Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return Plan{}, fmt.Errorf("text files: %w", ErrNotOpen)
	}
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	n := orDefault(s.Partitions, 4)
	end, err := s.end(ctx, least(orDefault(s.MaxBytesPerBatch, defaultMaxBytes), l.Bytes))
	if err != nil {
		return Plan{}, err
	}
	cut := func(i int) int64 { return s.pos + (end-s.pos)*int64(i)/int64(n) }
	if most, limited := most(l, n); limited {
		begins, err := s.begins(ctx, s.pos, end, most)
		if err != nil {
			return Plan{}, err
		}
		if int64(len(begins)) > most {
			end, begins = begins[most], begins[:most]
		}
		// Cut by lines, so that no range has more than its limit.
		cut = func(i int) int64 {
			switch k := i * len(begins) / n; {
			case i == 0:
				return s.pos
			case k >= len(begins):
				return end
			default:
				return begins[k]
			}
		}
	}
	var p Plan
	for i := range n {
		p.Ranges = append(p.Ranges, Range{Partition: strconv.Itoa(i), From: cut(i), Until: cut(i + 1), Epoch: s.epoch})
	}
	s.pos = end
	total := s.total()
	s.health.planned(p, func(i int) int64 { // what waits lies behind the last range
		if i == n-1 {
			return total
		}
		return p.Ranges[i].Until
	}, 0, 0)
	return p, nil
}

// end is where a plan ends that may take so many bytes of lines: behind a whole line.
func (s *Files[T]) end(ctx context.Context, left int64) (int64, error) {
	end, full, some := s.pos, left < 0, false
	err := s.each(s.pos, s.total(), func(base int64, sp span) error {
		if full {
			return nil
		}
		to, taken, err := sp.whole(ctx, left, !some)
		end, left, some = base+to, left-taken, some || taken > 0
		full = to < sp.until || left <= 0
		return err
	})
	return end, err
}

// most is how many records n ranges may hold together.
func most(l Limits, n int) (all int64, limited bool) {
	const unbounded = math.MaxInt64 / 2
	all = unbounded
	if l.Records != 0 {
		all = min(all, max(l.Records, 0))
	}
	if l.PerPartition != 0 {
		each := min(max(l.PerPartition, 0), unbounded/int64(n))
		all = min(all, each*int64(n))
	}
	return all, all < unbounded
}

// begins finds where lines begin in [from, until) of the whole: most+1 of them,
// to know where the last one ends, or fewer if there are no more.
func (s *Files[T]) begins(ctx context.Context, from, until, most int64) ([]int64, error) {
	var out []int64
	err := s.each(from, until, func(base int64, sp span) error {
		if int64(len(out)) > most {
			return nil
		}
		b, err := sp.begins(ctx, most+1-int64(len(out)))
		for _, at := range b {
			out = append(out, base+at)
		}
		return err
	})
	if most == 0 && len(out) == 0 {
		out = append(out, from)
	}
	return out, err
}

// each calls f with the parts of files that lie in [from, until) of the whole.
func (s *Files[T]) each(from, until int64, f func(base int64, sp span) error) error {
	i := sort.Search(len(s.sizes), func(i int) bool { return s.begin[i+1] > from })
	for ; i < len(s.sizes) && s.begin[i] < until; i++ {
		base := s.begin[i]
		sp := span{fsys: s.fsys, path: s.paths[i], size: s.sizes[i], maxLine: orDefault(s.MaxLine, defaultMaxLine),
			from: max(from-base, 0), until: min(until-base, s.sizes[i])}
		if err := f(base, sp); err != nil {
			return err
		}
	}
	return nil
}

// Read implements Source.
func (s *Files[T]) Read(ctx context.Context, r Range, emit func(offset int64, v T) error) error {
	s.mu.RLock()
	open, total, epoch := s.open, s.total(), s.epoch
	s.mu.RUnlock()
	switch {
	case !open:
		return fmt.Errorf("text files: %w", ErrNotOpen)
	case r.Epoch != epoch:
		return &RangeError{Source: "text files", Range: r, Why: fmt.Sprintf("it was planned for other files (fingerprint %s, now %s)", r.Epoch, epoch)}
	case r.From < 0 || r.Until < r.From || r.Until > total:
		return &RangeError{Source: "text files", Range: r, Why: fmt.Sprintf("the files have %d bytes", total)}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := s.each(r.From, r.Until, func(base int64, sp span) error {
		return sp.lines(ctx, func(at int64, line string) error {
			return emit(base+at, s.make(line, sp.path, at))
		})
	})
	if err == nil {
		s.health.moved(r)
	}
	return err
}

func (s *Files[T]) total() int64 {
	if len(s.begin) == 0 {
		return 0
	}
	return s.begin[len(s.begin)-1]
}

// Locate implements Locator.
func (s *Files[T]) Locate(_ string, offset int64) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := sort.Search(len(s.sizes), func(i int) bool { return s.begin[i+1] > offset })
	if i == len(s.sizes) || offset < 0 {
		return fmt.Sprintf("byte %d, outside the files", offset)
	}
	return fmt.Sprintf("%s, byte %d", s.paths[i], offset-s.begin[i])
}

// Sparse implements Sparse: offsets are bytes.
func (s *Files[T]) Sparse() bool { return true }

// Committed implements Source.
func (s *Files[T]) Committed(ctx context.Context, p Plan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.health.committed(p, 0)
	return nil
}

// Report implements Reporter. Offsets are bytes; what is in no plan yet lies behind the
// last partition.
func (s *Files[T]) Report() Report {
	parts, _, _, _ := s.health.report()
	return Report{Partitions: parts}
}

// Done implements Bounded.
func (s *Files[T]) Done() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.open && s.pos == s.total()
}

// Close implements Source. Closed files can be opened again.
func (s *Files[T]) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
	return nil
}
