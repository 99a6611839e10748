package milltool

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/statemill/statemill/vfs"
)

// errNoRoot says that a folder holds no checkpoint root.
var errNoRoot = errors.New("no checkpoint root")

// open opens the store of a root, which may be one that is still to be made. Its tag
// is a new one, as commands that write need it; reading ones use none.
func (c *call) open(dir string) (vfs.Store, error) {
	if c.env.Open != nil {
		return c.env.Open(dir)
	}
	return vfs.NewDir(c.env.FS, dir, "tool-"+c.env.ID())
}

// existing opens a root that must be there. Where roots are folders it tells those
// that are not there, and files, from folders that hold no root.
func (c *call) existing(dir string) (vfs.Store, error) {
	if dir == "" {
		return nil, usagef("DIR is empty")
	}
	if c.env.Open == nil {
		switch info, err := c.env.FS.Stat(dir); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w in %s: there is no such folder", errNoRoot, dir)
		case err != nil:
			return nil, err
		case !info.Dir:
			return nil, fmt.Errorf("%w in %s: it is a file", errNoRoot, dir)
		}
	}
	return c.open(dir)
}

// fresh opens a folder for a root that is to be made beside the one in dir.
func (c *call) fresh(newDir, dir string) (vfs.Store, error) {
	if newDir == "" {
		return nil, usagef("NEWDIR is empty")
	}
	if c.env.Open == nil {
		if info, err := c.env.FS.Stat(newDir); err == nil && !info.Dir {
			return nil, fmt.Errorf("%s is a file: give a new folder", newDir)
		}
		if dir != "" && within(c.resolved(newDir), c.resolved(dir)) {
			return nil, fmt.Errorf("%s lies in %s, where only the files of that root belong: give a folder beside it", newDir, dir)
		}
	}
	return c.open(newDir)
}

// resolved is a path without links: of one that is not there yet, its folders are.
func (c *call) resolved(path string) string {
	path, err := filepath.Abs(path)
	if err != nil || c.env.Resolve == nil {
		return path
	}
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, err := c.env.Resolve(at); err == nil {
			return filepath.Join(real, rest)
		}
		if filepath.Dir(at) == at {
			return path
		}
	}
}

// within reports whether a path lies below a folder, as far as their names tell.
func within(path, dir string) bool {
	path, perr := filepath.Abs(path)
	dir, derr := filepath.Abs(dir)
	if perr != nil || derr != nil {
		return false
	}
	rest, below := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
	return below && rest != ""
}
