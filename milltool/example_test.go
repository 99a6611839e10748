package milltool_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltool"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// The tool is a function of arguments, writers and a store: here, a root in
// memory that a job has written, three words a batch.
func ExampleRun() {
	files, root := vfs.NewMem(), vfs.NewObjects()
	if err := vfs.WriteFile(files, "words", []byte("to\nbe\nor\nnot\nto\nbe\n")); err != nil {
		fmt.Println(err)
	}
	job := func(ssc *dstream.StreamingContext) error {
		words := dstream.From(ssc, "words", source.TextFiles(files, "words"))
		ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
		counts := dstream.MapWithState(ones, dstream.Function(
			func(w string, one dstream.Option[int], sum *dstream.State[int]) int {
				sum.Update(sum.OrElse(0) + one.OrElse(0))
				return sum.Get()
			}).Named("counts"))
		dstream.Foreach(counts, func(context.Context, dstream.Batch, int) error { return nil })
		return nil
	}
	ctx := context.Background()
	err := dstream.Run(ctx, time.Millisecond, job, dstream.WithCheckpointStore(root), dstream.WithMaxRecordsPerBatch(3), dstream.WithStopWhenDone())
	if err != nil {
		fmt.Println(err)
	}

	env := milltool.System()
	env.Stdout, env.Stderr = os.Stdout, os.Stdout
	env.Open = func(string) (vfs.Store, error) { return root, nil }
	env.Args = strings.Fields("diff ckpt counts 1 2")
	fmt.Println("exit code", milltool.Run(ctx, env))
	// Output:
	// ~  "be"   1 → 2
	// +  "not"  1
	// ~  "to"   1 → 2
	// exit code 0
}
