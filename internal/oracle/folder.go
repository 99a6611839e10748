package oracle

import (
	"fmt"
	"os"
	"path/filepath"
)

// The least numbers of case files: fewer means that some were lost, and that a
// green run would prove less than it says.
const (
	defaultCases  = 167 // in the recorded folder beside the repository
	testdataCases = 23  // in testdata
)

// Folder is a folder of cases and the least number of files that it must have.
type Folder struct {
	Dir   string
	Least int
}

// Choose says which cases are replayed: those of $STATEMILL_ORACLE if it is
// set, else those of ../shared/oracle from the repository's root, else, in a
// clone that has no such folder, the few of testdata. root is the repository's
// root; a relative $STATEMILL_ORACLE is taken from there.
func Choose(root, env string) Folder {
	recorded := Folder{filepath.Join(root, "..", "shared", "oracle"), defaultCases}
	few := Folder{filepath.Join(root, "internal", "oracle", "testdata"), testdataCases}
	if env != "" {
		dir := env
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
		for _, known := range []Folder{recorded, few} {
			if filepath.Clean(dir) == known.Dir {
				return known
			}
		}
		return Folder{filepath.Clean(dir), 1}
	}
	if info, err := os.Stat(recorded.Dir); err == nil && info.IsDir() {
		return recorded
	}
	return few
}

// Root finds the repository's root from a folder within it.
func Root(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("oracle: no go.mod at or above %s", dir)
		}
		dir = up
	}
}

// Check refuses a folder that holds fewer cases than it must.
func (f Folder) Check(n int) error {
	if n < f.Least {
		return fmt.Errorf("oracle: %s holds %d case files, want at least %d: some are missing", f.Dir, n, f.Least)
	}
	return nil
}
