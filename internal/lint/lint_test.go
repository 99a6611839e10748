package lint

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRepository runs every rule over the repository.
func TestRepository(t *testing.T) {
	tree, err := Load(repositoryRoot(t))
	require.NoError(t, err)
	require.Greater(t, len(tree.Files), 10, "the walk must find the repository's files")
	for _, f := range Check(tree) {
		t.Error(f)
	}
	report(t, tree)
}

// report tells the sizes: the median file is to stay under 200 lines.
func report(t *testing.T, tree *Tree) {
	var lines, tests []int
	largest := tree.Files[0]
	for _, f := range tree.Files {
		if f.Test {
			tests = append(tests, f.Lines)
			continue
		}
		lines = append(lines, f.Lines)
		if f.Lines > largest.Lines || largest.Test {
			largest = f
		}
	}
	slices.Sort(lines)
	slices.Sort(tests)
	t.Logf("%d files, median %d lines, largest %s with %d; %d test files, median %d lines; lines of test for one of source: %.2f",
		len(lines), median(lines), largest.Path, largest.Lines, len(tests), median(tests), float64(sum(tests))/float64(max(1, sum(lines))))
	if m := median(lines); m > 200 {
		t.Errorf("the median source file has %d lines, more than 200: split by theme", m)
	}
}

func median(sorted []int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

func sum(v []int) (n int) {
	for _, x := range v {
		n += x
	}
	return n
}

// repositoryRoot walks up to the folder that holds .ci, which only the root has.
func repositoryRoot(t *testing.T) string {
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, ".ci")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, parent, dir, "no repository root above the test")
		dir = parent
	}
}

// TestRoomsHaveNoCycle: an edge may be added to the list only if it makes no cycle.
func TestRoomsHaveNoCycle(t *testing.T) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(room string, trail []string)
	visit = func(room string, trail []string) {
		if state[room] == visiting {
			t.Fatalf("the room list has a cycle: %v", append(trail, room))
		}
		if state[room] == done {
			return
		}
		state[room] = visiting
		for _, to := range rooms[room] {
			if to != all {
				visit(to, append(trail, room))
			}
		}
		state[room] = done
	}
	for room := range rooms {
		visit(room, nil)
	}
}
