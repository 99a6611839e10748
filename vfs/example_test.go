package vfs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/statemill/statemill/vfs"
)

// The same code on a folder and on an object store; the second to come reads
// what the first has written.
func ExampleStore() {
	folder, err := vfs.NewDir(vfs.NewMem(), "root", "run-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for _, store := range []vfs.Store{folder, vfs.NewObjects()} {
		for _, who := range []string{"first", "second"} {
			err := store.PutIfAbsent(ctx, "commits/7", func(w io.Writer) error {
				_, err := io.WriteString(w, who)
				return err
			})
			if errors.Is(err, fs.ErrExist) {
				there, _ := store.Get(ctx, "commits/7")
				fmt.Printf("%s: taken by %s\n", who, there)
			}
		}
	}
	// Output:
	// second: taken by first
	// second: taken by first
}

// A process dies while it writes, and the machine loses what was not synced:
// the file is not there.
func ExampleFaults() {
	m := vfs.NewMem()
	var faults vfs.Faults
	faults.Fail(vfs.Rule{Kinds: vfs.KindSync, Dead: true})
	err := vfs.CreateExclusive(vfs.WithFaults(m, &faults), ".", "7", "7.tmp", func(w io.Writer) error {
		_, err := io.WriteString(w, "content")
		return err
	})
	fmt.Println(err)
	_, err = m.CrashClone(nil, 0).Stat("7")
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output:
	// create 7: injected fault
	// true
}
