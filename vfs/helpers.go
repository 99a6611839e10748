package vfs

import (
	"fmt"
	"io"
)

// ReadFile returns the whole content of a file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// WriteFile creates a file exclusively, writes data and syncs the file. The
// name itself is durable only after SyncDir of its directory. On error the
// file is left as it is, for the caller to judge.
func WriteFile(fsys FS, name string, data []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// As returns fsys under another host and pid, so that tests can have several
// processes on one file system.
func As(fsys FS, host string, pid int) FS { return as{fsys, host, pid} }

type as struct {
	FS
	host string
	pid  int
}

func (a as) Hostname() (string, error) { return a.host, nil }
func (a as) PID() int                  { return a.pid }
