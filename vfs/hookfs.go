package vfs

import "io"

// hookFS lets an around see every call to a file system and its files, except
// Name, Hostname and PID.
type hookFS struct {
	FS
	h around
}

func (f hookFS) do(c Call, do func() error) error { return f.h.around(c, do, nil) }

func (f hookFS) file(kind Kind, name string, open func(string) (File, error)) (file File, err error) {
	err = f.do(Call{Kind: kind, Path: name}, func() error {
		file, err = open(name)
		return err
	})
	if err != nil {
		if file != nil {
			file.Close() // the answer was lost; nobody can close it any more
		}
		return nil, err
	}
	return hookFile{file, f.h}, nil
}

func (f hookFS) Create(name string) (File, error) { return f.file(KindCreate, name, f.FS.Create) }
func (f hookFS) Open(name string) (File, error)   { return f.file(KindOpen, name, f.FS.Open) }

func (f hookFS) ReadDir(name string) (list []Info, err error) {
	err = f.do(Call{Kind: KindReadDir, Path: name}, func() error { list, err = f.FS.ReadDir(name); return err })
	return list, err
}

func (f hookFS) Stat(name string) (i Info, err error) {
	err = f.do(Call{Kind: KindStat, Path: name}, func() error { i, err = f.FS.Stat(name); return err })
	return i, err
}

func (f hookFS) Remove(name string) error {
	return f.do(Call{Kind: KindRemove, Path: name}, func() error { return f.FS.Remove(name) })
}

func (f hookFS) Link(oldname, newname string) error {
	return f.do(Call{Kind: KindLink, Path: oldname, To: newname}, func() error { return f.FS.Link(oldname, newname) })
}

func (f hookFS) MkdirAll(name string) error {
	return f.do(Call{Kind: KindMkdirAll, Path: name}, func() error { return f.FS.MkdirAll(name) })
}

func (f hookFS) SyncDir(name string) error {
	return f.do(Call{Kind: KindSyncDir, Path: name}, func() error { return f.FS.SyncDir(name) })
}

func (f hookFS) Lock(name, holder string) (io.Closer, error) {
	return hookLock(f.h, name, holder, f.FS.Lock)
}

// hookLock takes a lock whose release is a call too.
func hookLock(h around, name, holder string, take func(name, holder string) (io.Closer, error)) (io.Closer, error) {
	var held io.Closer
	err := h.around(Call{Kind: KindLock, Path: name}, func() (err error) {
		held, err = take(name, holder)
		return err
	}, nil)
	if err != nil {
		if held != nil {
			held.Close()
		}
		return nil, err
	}
	return closer(func() error { return hookClose(h, Call{Kind: KindUnlock, Path: name}, held) }), nil
}

type closer func() error

func (c closer) Close() error { return c() }

type hookFile struct {
	File
	h around
}

func (f hookFile) Write(p []byte) (n int, err error) {
	return hookWrite(f.h, f.Name(), p, f.File)
}

// hookWrite is a write of which only a first part may get through.
func hookWrite(h around, name string, p []byte, w io.Writer) (n int, err error) {
	err = h.around(Call{Kind: KindWrite, Path: name, Bytes: len(p)},
		func() error { n, err = w.Write(p); return err },
		func(part int) { n, _ = w.Write(p[:part]) })
	return n, err
}

func (f hookFile) Read(p []byte) (n int, err error) {
	err = f.h.around(Call{Kind: KindRead, Path: f.Name(), Bytes: len(p)}, func() error { n, err = f.File.Read(p); return err }, nil)
	return n, err
}

func (f hookFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.h.around(Call{Kind: KindRead, Path: f.Name(), Bytes: len(p)}, func() error { n, err = f.File.ReadAt(p, off); return err }, nil)
	return n, err
}

func (f hookFile) Stat() (i Info, err error) {
	err = f.h.around(Call{Kind: KindStat, Path: f.Name()}, func() error { i, err = f.File.Stat(); return err }, nil)
	return i, err
}

func (f hookFile) Sync() error {
	return f.h.around(Call{Kind: KindSync, Path: f.Name()}, f.File.Sync, nil)
}

func (f hookFile) Close() error { return hookClose(f.h, Call{Kind: KindClose, Path: f.Name()}, f.File) }

// hookClose closes even if the call is made to fail: nobody could do it later,
// and a process that dies closes everything too.
func hookClose(h around, c Call, under io.Closer) error {
	done := false
	err := h.around(c, func() error { done = true; return under.Close() }, nil)
	if !done {
		_ = under.Close()
	}
	return err
}
