package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Disk returns the file system of the machine.
func Disk() FS { return disk{} }

type disk struct{}

func (disk) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

func (disk) Open(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("is a directory: %w", fs.ErrInvalid)}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return diskFile{f}, nil
}

func (disk) ReadDir(name string) ([]Info, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	list := make([]Info, 0, len(entries))
	for _, e := range entries {
		// Stat, not the entry's own Info: a symbolic link stands for its target.
		info, err := os.Stat(filepath.Join(name, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since the directory was read
		}
		if err != nil {
			return nil, err
		}
		list = append(list, infoOf(info, e.Name()))
	}
	return list, nil
}

func (disk) Remove(name string) error { return os.Remove(name) }

func (disk) Link(oldname, newname string) error { return os.Link(oldname, newname) }

func (disk) MkdirAll(name string) error { return os.MkdirAll(name, 0o755) }

// SyncDir makes the names of a directory durable. Windows has no such call (its
// file system journals names): there it only checks that the directory is one.
func (disk) SyncDir(name string) error {
	if runtime.GOOS == "windows" {
		info, err := os.Stat(name)
		if err == nil && !info.IsDir() {
			err = pathErr("sync", name, errNotDir)
		}
		return err
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

func (disk) Stat(name string) (Info, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Info{}, err
	}
	return infoOf(info, filepath.Base(name)), nil
}

func (disk) Hostname() (string, error) { return os.Hostname() }

func (disk) PID() int { return os.Getpid() }

func infoOf(info fs.FileInfo, name string) Info {
	i := Info{Name: name, Size: info.Size(), ModTime: info.ModTime().UTC(), Dir: info.IsDir()}
	if i.Dir {
		i.Size = 0
	}
	return i
}

type diskFile struct{ *os.File }

func (f diskFile) Stat() (Info, error) {
	info, err := f.File.Stat()
	if err != nil {
		return Info{}, err
	}
	return infoOf(info, filepath.Base(f.Name())), nil
}
