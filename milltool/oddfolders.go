package milltool

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

// foldersBelow lists the folders below a directory, empty ones too, which no list of
// objects shows: slash-separated and relative to it. Links are not followed.
func foldersBelow(fsys vfs.FS, dir string) (folders []string, err error) {
	for todo := []string{""}; len(todo) > 0; todo = todo[1:] {
		infos, err := fsys.ReadDir(filepath.Join(dir, filepath.FromSlash(todo[0])))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, i := range infos {
			if i.Dir {
				name := strings.TrimPrefix(todo[0]+"/"+i.Name, "/")
				folders, todo = append(folders, name), append(todo, name)
			}
		}
	}
	return folders, nil
}

// oddFolders tells folders that a root does not have. One that has the name of a file
// which a run is to create is damage: the run cannot create it.
func (r *verifier) oddFolders() error {
	if r.folders == nil {
		return nil
	}
	folders, err := r.folders()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		n, isFile := fileVersion(folder)
		if _, ok := documentNumber(folder); ok && !isFile || folder == checkpoint.LockName {
			n, isFile = r.newest+1, true
		}
		switch {
		case isFile && (n >= r.oldest || r.newest == 0):
			r.found(damage, folder, "a folder with the name of a file, which no run can create while it is there: take it away")
		case !rootFolder(folder):
			r.found(note, folder+"/", "no folder of a checkpoint root")
		}
	}
	return nil
}

// rootFolder tells the folders that roots have.
func rootFolder(folder string) bool {
	switch folder {
	case "owner", "metadata", "offsets", "commits", "counts", "state":
		return true
	}
	for _, below := range []string{"/1.1.delta", "/0/1.1.delta"} { // a partition's, an operator's or a layout's
		if _, ok := checkpoint.ParseStateName(folder + below); ok {
			return true
		}
	}
	return false
}
