package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// diskLock is a held lock: an open file whose lock the system drops with it,
// also when the process dies.
type diskLock struct{ f *os.File }

// Lock takes the advisory lock name; see [FS]. On Linux, macOS and the BSDs it
// is flock(2), on Windows a file that nobody else may open for writing;
// elsewhere, and on file systems without flock, it answers
// errors.ErrUnsupported.
func (disk) Lock(name, holder string) (io.Closer, error) {
	for {
		f, err := openLocked(name)
		if err != nil {
			return nil, err
		}
		// The file may have been removed and made anew between open and lock;
		// then the lock is of a file that nobody else will meet.
		mine, err := f.Stat()
		if err == nil {
			var there os.FileInfo
			if there, err = os.Stat(name); err == nil && os.SameFile(mine, there) {
				return held(f, holder)
			}
		}
		f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// held writes the holder's text for those who come later. It is advice, so it
// is not synced.
func held(f *os.File, holder string) (io.Closer, error) {
	err := f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(holder), 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &diskLock{f}, nil
}

// Close takes the text back and releases the lock.
func (l *diskLock) Close() error {
	// What fails here is only the advice; closing is what counts.
	_ = l.f.Truncate(0)
	return l.f.Close()
}

// heldBy makes the error for a lock that is held, with the holder's text.
func heldBy(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		b = nil // the holder stays unnamed
	}
	return &LockedError{Path: name, Holder: string(b)}
}
