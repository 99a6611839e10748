package source_test

import (
	"context"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

func step(t *testing.T, s source.Source[string]) (lines []string, p source.Plan) {
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	for _, part := range readAll(t, s, p) {
		lines = append(lines, part...)
	}
	return lines, p
}

func TestDirectoryOnlyCompleteFilesOnce(t *testing.T) {
	fsys := vfs.NewMem()
	write(t, fsys, "in/sub/deep", "never\n")
	write(t, fsys, "in/.hidden", "never\n")
	write(t, fsys, "in/_temporary", "never\n")
	write(t, fsys, "in/half.tmp", "never\n")
	write(t, fsys, "in/a", "a1\na2\n")
	s := source.Dir(fsys, "in")
	require.NoError(t, s.Open(t.Context(), nil))
	lines, _ := step(t, s)
	require.Empty(t, lines, "seen for the first time")
	growing, err := fsys.Create("in/b")
	require.NoError(t, err)
	lines, _ = step(t, s)
	require.Equal(t, []string{"a1", "a2"}, lines)
	for range 4 { // still written: its size moves from look to look
		_, err = io.WriteString(growing, "b\n")
		require.NoError(t, err)
		lines, _ = step(t, s)
		require.Empty(t, lines)
	}
	require.NoError(t, growing.Close())
	lines, p := step(t, s)
	require.Equal(t, []string{"b", "b", "b", "b"}, lines)
	lines, _ = step(t, s)
	require.Empty(t, lines)

	// The next run does not read them again; a name that went away is forgotten.
	s = source.Dir(fsys, "in")
	s.Settle = -1
	require.NoError(t, s.Open(t.Context(), &p))
	lines, _ = step(t, s)
	require.Empty(t, lines)
	require.NoError(t, fsys.Remove("in/a"))
	lines, _ = step(t, s)
	require.Empty(t, lines)
	write(t, fsys, "in/a", "new\n")
	lines, _ = step(t, s)
	require.Equal(t, []string{"new"}, lines)
}

func TestDirectoryBadInput(t *testing.T) {
	ctx := t.Context()
	fsys := vfs.NewMem()
	err := source.Dir(fsys, "nowhere").Open(ctx, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, `"nowhere"`)
	write(t, fsys, "in/f", "one\n")
	s := source.DirLines(fsys, "in")
	s.Settle = -2
	require.ErrorContains(t, s.Open(ctx, nil), "may be negative")
	s.Settle = -1
	require.NoError(t, s.Open(ctx, nil))
	p, err := s.Plan(ctx, source.Limits{})
	require.NoError(t, err)
	require.Equal(t, [][]source.Line{nil, {{Text: "one", File: "in/f"}}}, readAll(t, s, p))
	require.Equal(t, "in/f, byte 0", s.Locate("f", 0))
	require.NoError(t, fsys.Remove("in/f"))
	err = s.Read(ctx, p.Ranges[1], func(int64, source.Line) error { return nil })
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, bad := range []source.Range{{Partition: "../f", Epoch: "4"}, {Partition: "f", Epoch: "x"}, {Partition: "f", Until: 5, Epoch: "4"}} {
		require.Error(t, s.Read(ctx, bad, nil))
		require.Error(t, s.Open(ctx, &source.Plan{Ranges: []source.Range{bad}}))
	}
	require.ErrorContains(t, s.Open(ctx, &source.Plan{Ranges: []source.Range{{Partition: ".", Epoch: "?"}}}), "last plan")
}

// Every waiting file gets its share, so a huge one does not hold up the others.
func TestDirectoryShares(t *testing.T) {
	fsys := vfs.NewMem()
	write(t, fsys, "in/a", string(make([]byte, 1<<20))+"\n")
	write(t, fsys, "in/b", "b\n")
	s := source.Dir(fsys, "in")
	s.Settle, s.MaxBytesPerBatch = -1, 1000
	require.NoError(t, s.Open(context.Background(), nil))
	var got []string
	for range 4 {
		lines, _ := step(t, s)
		got = append(got, lines...)
	}
	require.Contains(t, got, "b")
}

// A line that is longer than a file's share of the bytes is waited for no longer than
// other files': in each epoch one line of one file goes. // report 36
func TestLongLineDoesNotWaitForOtherFiles(t *testing.T) {
	fsys := vfs.NewMem()
	write(t, fsys, "in/a", strings.Repeat("short\n", 1000))
	write(t, fsys, "in/b", strings.Repeat("x", 900)+"\n")
	write(t, fsys, "in/c", strings.Repeat("short\n", 1000))
	write(t, fsys, "in/d", strings.Repeat("y", 3000)+"\n")
	write(t, fsys, "in/e", strings.Repeat("z", 999)+"\n") // the limit to the byte
	s := source.Dir(fsys, "in")
	s.Settle = -1
	ctx := context.Background()
	require.NoError(t, s.Open(ctx, nil))
	long := map[string]bool{}
	for epoch := uint64(1); epoch <= 20; epoch++ {
		p, err := s.Plan(ctx, source.Limits{Bytes: 1000, Epoch: epoch})
		require.NoError(t, err)
		n, bytes := 0, 0
		for _, r := range p.Ranges {
			require.NoError(t, s.Read(ctx, r, func(_ int64, line string) error {
				n, bytes = n+1, bytes+len(line)+1
				if len(line) > 100 {
					long[line[:1]] = true
				}
				return nil
			}))
		}
		if n == 0 {
			break
		}
		require.True(t, bytes <= 1000 || n == 1, "%d bytes in %d lines", bytes, n)
		require.NoError(t, s.Committed(ctx, p))
	}
	require.Len(t, long, 3, "the long lines have gone")
}
