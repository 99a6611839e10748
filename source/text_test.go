package source_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drain runs a bounded source to its end.
func drain[T any](t require.TestingT, s source.Source[T], l source.Limits) []T {
	var out []T
	for !s.(source.Bounded).Done() {
		l.Epoch++
		p, err := s.Plan(context.Background(), l)
		require.NoError(t, err)
		for _, part := range readAll(t, s, p) {
			out = append(out, part...)
		}
		require.NoError(t, s.Committed(context.Background(), p))
	}
	return out
}

// Whatever the partitions, batch sizes and limits, the lines are the files' lines,
// each once, in order, with their places.
func TestFilesAnyCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fsys := vfs.NewMem()
		var paths []string
		var want []source.Line
		for i, text := range rapid.SliceOfN(rapid.StringMatching(`([ab]{0,9}(\n|\r\n)?){0,9}`), 1, 4).Draw(t, "files") {
			path := string(rune('a' + i))
			write(t, fsys, path, text)
			paths = append(paths, path)
			at := int64(0)
			for rest := []byte(text); len(rest) > 0; {
				line, after, _ := bytes.Cut(rest, []byte("\n"))
				want = append(want, source.Line{Text: strings.TrimSuffix(string(line), "\r"), File: path, Offset: at})
				at += int64(len(rest) - len(after))
				rest = after
			}
		}
		s := source.FileLines(fsys, paths...)
		s.Partitions = rapid.IntRange(0, 5).Draw(t, "partitions")
		s.MaxBytesPerBatch = rapid.SampledFrom([]int64{0, 1, 2, 5, 17}).Draw(t, "bytes")
		l := source.Limits{Records: rapid.Int64Range(0, 4).Draw(t, "records"), PerPartition: rapid.Int64Range(0, 3).Draw(t, "each")}
		require.NoError(t, s.Open(context.Background(), nil))
		got := drain(t, s, l)
		require.Equal(t, want, got)
		require.NoError(t, s.Close())
	})
}

// Lines longer than a block, and many blocks.
func TestFilesLongLines(t *testing.T) {
	fsys := vfs.NewMem()
	var want []string
	for i := range 40 {
		want = append(want, strings.Repeat(string(rune('a'+i%26)), i*i*700))
	}
	write(t, fsys, "f", strings.Join(want, "\n"))
	for _, maxBytes := range []int64{0, 100_000} {
		s := source.TextFiles(fsys, "f")
		s.MaxBytesPerBatch = maxBytes
		require.NoError(t, s.Open(t.Context(), nil))
		require.Equal(t, want, drain(t, s, source.Limits{}))
	}
	s := source.TextFiles(fsys, "f")
	s.MaxLine = 1_000_000
	require.NoError(t, s.Open(t.Context(), nil))
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	for _, r := range p.Ranges {
		if err = s.Read(t.Context(), r, func(int64, string) error { return nil }); err != nil {
			break
		}
	}
	var long *source.LineTooLongError
	require.ErrorAs(t, err, &long)
	require.Equal(t, 1_000_000, long.Max)
	require.ErrorContains(t, err, "MaxLine")
}

func TestFilesBadInput(t *testing.T) {
	ctx := t.Context()
	fsys := vfs.NewMem()
	write(t, fsys, "dir/f", "one\ntwo\n")
	require.ErrorContains(t, source.TextFiles(fsys).Open(ctx, nil), "no file")
	err := source.TextFiles(fsys, "dir/f", "missing").Open(ctx, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, `"missing"`)
	require.ErrorContains(t, source.TextFiles(fsys, "dir").Open(ctx, nil), "is a directory")
	s := source.TextFiles(fsys, "dir/f")
	s.MaxLine = -1
	require.ErrorContains(t, s.Open(ctx, nil), "may be negative")

	// The file is cut after the plan.
	s = source.TextFiles(fsys, "dir/f")
	s.Partitions = 1
	require.NoError(t, s.Open(ctx, nil))
	p, err := s.Plan(ctx, source.Limits{})
	require.NoError(t, err)
	require.NoError(t, fsys.Remove("dir/f"))
	write(t, fsys, "dir/f", "one\nt")
	err = s.Read(ctx, p.Ranges[0], func(int64, string) error { return nil })
	var changed *source.ChangedError
	require.ErrorAs(t, err, &changed)
	require.ErrorContains(t, err, "ends at or before byte 5")
	require.NoError(t, fsys.Remove("dir/f"))
	require.ErrorIs(t, s.Read(ctx, p.Ranges[0], func(int64, string) error { return nil }), fs.ErrNotExist)

	// The next run finds other files.
	write(t, fsys, "dir/f", "one\ntwo\nthree\n")
	err = source.TextFiles(fsys, "dir/f").Open(ctx, &p)
	require.ErrorAs(t, err, &changed)
	require.ErrorContains(t, err, "new checkpoint")
}

func TestFilesLocate(t *testing.T) {
	fsys := vfs.NewMem()
	write(t, fsys, "a", "one\n")
	write(t, fsys, "b", "two\nthree\n")
	s := source.TextFiles(fsys, "a", "b")
	require.NoError(t, s.Open(t.Context(), nil))
	require.Equal(t, "b, byte 4", s.Locate("0", 8))
	require.Contains(t, s.Locate("0", 99), "outside")
	require.True(t, s.Sparse())
}

// A disk error in the middle is an error with its place.
func TestFilesReadError(t *testing.T) {
	fsys := &badDisk{FS: vfs.NewMem(), err: errors.New("disk gone")}
	write(t, fsys.FS, "f", strings.Repeat("line\n", 100_000))
	s := source.TextFiles(fsys, "f")
	require.NoError(t, s.Open(t.Context(), nil))
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	err = s.Read(t.Context(), p.Ranges[1], func(int64, string) error { return nil })
	require.ErrorIs(t, err, fsys.err)
	require.ErrorContains(t, err, `"f" at byte`)
	_, err = s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	s2 := source.TextFiles(fsys, "f")
	require.NoError(t, s2.Open(t.Context(), nil))
	_, err = s2.Plan(t.Context(), source.Limits{Records: 5})
	require.ErrorIs(t, err, fsys.err)
}

type badDisk struct {
	vfs.FS
	err error
}

func (d *badDisk) Open(name string) (vfs.File, error) {
	f, err := d.FS.Open(name)
	return badFile{f, d.err}, err
}

type badFile struct {
	vfs.File
	err error
}

func (f badFile) ReadAt([]byte, int64) (int, error) { return 0, f.err }
