package vfs

import (
	"os"
	"syscall"
)

// sharingViolation is ERROR_SHARING_VIOLATION, which package syscall does not
// name.
const sharingViolation = syscall.Errno(32)

// openLocked opens the lock's file for writing and lets others only read it:
// who also wants to write is refused by the system until the handle is closed.
func openLocked(name string) (*os.File, error) {
	p, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, pathErr("lock", name, err)
	}
	h, err := syscall.CreateFile(p, syscall.GENERIC_READ|syscall.GENERIC_WRITE, syscall.FILE_SHARE_READ, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err == sharingViolation {
		return nil, heldBy(name)
	}
	if err != nil {
		return nil, pathErr("lock", name, err)
	}
	return os.NewFile(uintptr(h), name), nil
}
