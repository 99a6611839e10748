package ckpt

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

const dir = "/ckpt"

// root is a checkpoint on a file system in memory.
type root struct {
	t    testing.TB
	disk *vfs.Mem
}

func (r *root) store(tag string) vfs.Store {
	s, err := vfs.NewDir(r.disk, dir, tag)
	require.NoError(r.t, err)
	return s
}

// clone is a copy, as of another disk.
func (r *root) clone(t testing.TB) *root { return &root{t: t, disk: r.disk.CrashClone(nil, 100)} }

// files lists the names in the root, without the locks.
func (r *root) files() []string {
	list, err := r.store("reader").List(context.Background(), "")
	require.NoError(r.t, err)
	var names []string
	for _, o := range list {
		if o.Name != "lock" {
			names = append(names, o.Name)
		}
	}
	return names
}

// match lists the files that a pattern of path.Match fits, in the order of the versions
// in their names.
func (r *root) match(pattern string) []string {
	var names []string
	for _, name := range r.files() {
		ok, err := path.Match(pattern, name)
		require.NoError(r.t, err)
		if ok {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return number(a) - number(b) })
	return names
}

// number is the first number of a file's name.
func number(name string) (n int) {
	fmt.Sscanf(path.Base(name), "%d", &n)
	return n
}

// some is match for a pattern that must fit.
func (r *root) some(pattern string) []string {
	names := r.match(pattern)
	require.NotEmpty(r.t, names, "no file %s in %s", pattern, strings.Join(r.files(), " "))
	return names
}

// last is the newest of the files that fit in each of the two partitions' folders.
func (r *root) last(kind string) (names []string) {
	for part := range 2 {
		all := r.some(fmt.Sprintf("state/1/%d/*.%s", part, kind))
		names = append(names, all[len(all)-1])
	}
	return names
}

func (r *root) read(name string) []byte {
	b, err := r.store("reader").Get(context.Background(), name)
	require.NoError(r.t, err)
	return b
}

func (r *root) remove(names ...string) {
	for _, name := range names {
		require.NoError(r.t, r.disk.Remove(dir+"/"+name))
	}
}

// write puts a file there as nobody but an accident does.
func (r *root) write(name string, b []byte) {
	full := dir + "/" + name
	require.NoError(r.t, r.disk.MkdirAll(path.Dir(full)))
	f, err := r.disk.Create(full)
	require.NoError(r.t, err)
	_, err = f.Write(b)
	require.NoError(r.t, err)
	require.NoError(r.t, f.Sync())
	require.NoError(r.t, f.Close())
	require.NoError(r.t, r.disk.SyncDir(path.Dir(full)))
}

// change replaces the bytes of files.
func (r *root) change(how func([]byte) []byte, names ...string) {
	for _, name := range names {
		b := how(r.read(name))
		r.remove(name)
		r.write(name, b)
	}
}

// content is every file with its bytes.
func (r *root) content() map[string][]byte {
	all := map[string][]byte{}
	for _, name := range r.files() {
		all[name] = r.read(name)
	}
	return all
}

// putBack undoes what was done to files that were there.
func (r *root) putBack(before map[string][]byte) {
	now := r.content()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		b, ok := now[name]
		if ok && string(b) == string(before[name]) {
			continue
		}
		if ok {
			r.remove(name)
		}
		r.write(name, before[name])
	}
}

// await waits for what a run does beside its batches.
func (r *root) await(what string, ok func() bool) {
	require.Eventually(r.t, ok, 20*time.Second, time.Millisecond, "%s: there is %s", what, strings.Join(r.files(), " "))
}
